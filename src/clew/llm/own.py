"""The model that a conversation talks to, asked by the same way and in the same format as before."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from clew import catalog
from clew.catalog import usage
from clew.catalog.usage import Spent
from clew.errors import BadRequest, ModelError
from clew.llm import requests
from clew.llm.requests import RequestBody
from clew.llm.streaming import Spoken
from clew.steps.chapters.model import Prompt, Reply
from clew.wire import named

STREAMING = ("stream", "stream_options")


@dataclass(frozen=True, slots=True)
class OwnModel:
    """What `speak` says to a body; whatever goes wrong there is a `ModelError`."""

    name: str
    format: str
    speak: Callable[[RequestBody], Awaitable[Spoken]] = field(repr=False)
    like: Mapping[str, Any] = field(default_factory=dict, repr=False)  # a request of the conversation
    limit: int | None = None  # its window, where the host knows it

    @property
    def window(self) -> int:
        return self.limit or catalog.window(self.name)

    async def __call__(self, prompt: Prompt) -> Reply:
        history = named(self.format).LIST
        body = requests.asking(prompt, self.format, self.name, self.like)
        body[history] = _as_written(body[history], self.like.get(history))
        # As its caller does: a provider may take long answers as streams only.
        return _reply(await self.speak(body | {key: self.like[key] for key in STREAMING if key in self.like}))


def _as_written(messages: Sequence[Any], before: Any) -> list[Any]:
    """Messages with the keys of each in the order in which a request had them: a provider has these in its cache."""
    known = before if isinstance(before, list) else []
    same = takewhile(lambda pair: pair[0] == pair[1], zip(messages, known, strict=False))
    begun = [was for _, was in same]
    return [*begun, *messages[len(begun) :]]


def _reply(spoken: Spoken) -> Reply:
    if spoken.stop == "refused":
        raise ModelError(f"the model declined to answer: {spoken.reason}", "refused")
    if spoken.stop == "cut":
        raise ModelError("the answer broke off", "network")
    try:
        took = usage.spent(spoken.usage or {})
    except BadRequest:
        took = Spent(0)
    calls = tuple(call.name for call in spoken.calls)
    return Reply(spoken.text, took, calls, bool(spoken.messages) and not spoken.text, spoken.stop == "length")
