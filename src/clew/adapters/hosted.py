"""A model that a framework already talks to, as one that writes chapters."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from clew import catalog
from clew.core.bridge import on_loop
from clew.errors import ModelError
from clew.steps.chapters.model import Prompt, Reply
from clew.wire.streams.faults import fault_of

CHAPTER = "clew chapter"  # the name under which callbacks and traces of a framework see a question
ERROR_CHARACTERS = 300  # characters of what an error says


@dataclass(frozen=True, slots=True)
class Hosted:
    """What `ask` answers to a prompt; whatever it raises is a `ModelError`, as of any model."""

    name: str
    ask: Callable[[Prompt], Awaitable[Reply]]
    limit: int | None = None  # its window, where the host knows it

    @property
    def window(self) -> int:
        return self.limit or catalog.window(self.name)

    async def __call__(self, prompt: Prompt) -> Reply:
        try:
            return await self.ask(prompt)
        except ModelError:
            raise
        except Exception as error:
            status = getattr(error, "status_code", None)
            said = " ".join(str(error).split())[:ERROR_CHARACTERS] or type(error).__name__
            raise ModelError(
                f"{self.name}: {said}", fault_of(status if isinstance(status, int) else 0, error)
            ) from None


def asked_here(ask: Callable[[Prompt], Coroutine[Any, Any, Reply]]) -> Callable[[Prompt], Awaitable[Reply]]:
    """The same, asked on the event loop and in the context of whoever calls this: connections and traces are theirs."""
    home, context = asyncio.get_running_loop(), copy_context()

    async def there(prompt: Prompt) -> Reply:
        return await home.create_task(ask(prompt), context=context)

    async def asked(prompt: Prompt) -> Reply:
        return await on_loop(home, there(prompt))

    return asked
