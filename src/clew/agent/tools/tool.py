"""What a tool is: its name, what it takes, what it may touch, and what a call of it would do."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from clew.agent.tools.root import displayed
from clew.core.arguments import checked
from clew.errors import ClewError, ToolError

Permission = Literal["read", "write", "run"]
Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call would do, in words for whoever is asked, and the doing of it."""

    preview: str
    work: Callable[[], Awaitable[str]]
    wants: Permission | None = None  # what it needs beside what its tool asks for

    async def act(self) -> str:
        """Do it; the text is for the model."""
        with _worded():
            return await self.work()


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that a model can call."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # a JSON schema
    asks: Permission
    planning: Callable[..., Awaitable[Plan]]  # takes the parameters by their names

    async def plan(self, arguments: Arguments) -> Plan:
        """Find out what the call would do, and do nothing; what cannot be done raises `ToolError` here."""
        with _worded():
            return await self.planning(**checked(self.name, self.parameters, arguments))

    async def run(self, arguments: Arguments) -> str:
        """Do it without asking; all that goes wrong is a `ToolError`."""
        return await (await self.plan(arguments)).act()


@contextmanager
def _worded() -> Iterator[None]:
    """What the system or clew refuses, in words for a model."""
    try:
        yield
    except OSError as error:
        words = (error.filename, error.strerror or error)
        raise ToolError(displayed(": ".join(str(word) for word in words if word))) from error
    except ToolError:
        raise
    except ClewError as error:
        raise ToolError(str(error)) from error
