"""What an agent asked clew in the middle of an answer: its caller never sees it, and the model does not forget it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from threading import Lock
from typing import Any

from clew import rawjson
from clew.errors import BadRequest, ModelError
from clew.items import Digests, Item
from clew.speaking.answers import MISSHAPEN, Answer
from clew.speaking.chat import ChatAnswer
from clew.speaking.events import END, Events
from clew.speaking.messages import MessagesAnswer
from clew.speaking.pieces import Spoken
from clew.speaking.responses import ResponsesAnswer

Block = dict[str, Any]

ANSWERS: Mapping[str, type[Answer]] = {
    "openai_chat": ChatAnswer,
    "openai_responses": ResponsesAnswer,
    "anthropic": MessagesAnswer,
}
MOST = 1_000  # asides that are remembered
_ENDED = {"finish_reason": "stop", "stop_reason": "end_turn"}  # of an answer whose calls were all taken out


class Hearing:
    """Listens to an answer as it passes, whole or streamed; what it cannot read it lets pass."""

    def __init__(self, format: str) -> None:
        self._answer = ANSWERS[format]()
        self._events = Events()
        self.begun = False  # nothing can take back what was said
        self.refusal = ""  # what was said instead of an answer
        self._lost = False

    def add(self, chunk: bytes) -> None:
        """Hear some bytes; none are the end."""
        if self._lost:
            return
        try:
            for data in self._events.add(chunk) if chunk else self._events.end():
                if data.strip() != END:
                    self.begun |= any([*self._answer.add(rawjson.loads(data))])
        except ModelError as error:
            self.refusal = "" if self.begun else str(error)
            self.begun = self._lost = True
        except (BadRequest, *MISSHAPEN):
            self.begun = self._lost = True

    def spoken(self) -> Spoken | None:
        """What was said, if it could be read."""
        try:
            return None if self._lost else self._answer.spoken()
        except MISSHAPEN:
            return None


@dataclass(frozen=True, slots=True)
class Aside:
    """What belongs into a history beside an answer that its caller has: before it, in it, and after its results."""

    before: Sequence[Item]
    calls: Sequence[Item] = ()
    results: Sequence[Item] = ()


class Asides:
    """The newest asides of all conversations, found again by what was said before them and the answer they led to."""

    def __init__(self) -> None:
        self._digests = Digests()
        self._kept: dict[tuple[str, str, tuple[str, ...]], Aside] = {}
        self._lock = Lock()

    def keep(self, past: Sequence[Item], answer: Sequence[Item], aside: Aside) -> None:
        """Remember an aside between what a caller said and the answer that he got."""
        chain = self._digests.run("", map(self._digests.content, past))
        with self._lock:
            self._kept[chain, *_answer(answer)] = aside
            if len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]

    def weave(self, items: Sequence[Item]) -> list[Item]:
        """A history as its caller has it, with its asides where they were."""
        if not self._kept:
            return list(items)
        woven: list[Item] = []
        owed: Sequence[Item] = ()
        chain = ""
        for role, run in groupby(items, key=lambda item: item.role):
            said = list(run)
            if role == "assistant":
                aside = self._kept.get((chain, *_answer(said)), _NONE)
                woven += [*owed, *aside.before, *said, *aside.calls]
                owed = aside.results
            else:  # all results of an answer stand together
                woven += [*said, *owed] if role == "tool" else [*owed, *said]
                owed = ()
            chain = self._digests.run(chain, map(self._digests.content, said))
        return [*woven, *owed]


_NONE = Aside(())


def _answer(said: Sequence[Item]) -> tuple[str, tuple[str, ...]]:
    """By what an answer is known, however its caller wrote it down."""
    return "".join(i.text for i in said if i.kind == "text"), tuple(i.call_id for i in said if i.kind == "call")


class Muted:
    """An answer without some of its calls, event by event; whole, it is one event."""

    def __init__(self, calls: Iterable[str], left: bool) -> None:
        self._calls = frozenset(calls)
        self._left = left  # whether other calls are in it
        self._places: list[int] = []  # of what was taken out

    def written(self, content: bytes) -> bytes:
        """The bytes of an answer anew."""
        events = Events()
        found = [*events.add(content), *events.end()]
        if not content.lstrip().startswith(b"{"):
            return b"".join(self._line(data) for data in found)
        [whole] = found
        return rawjson.dumps(self._said(rawjson.loads(whole)))

    def _line(self, data: str) -> bytes:
        if data.strip() == END:
            return b"data: [DONE]\n\n"
        event = self._said(rawjson.loads(data))
        if event is None:
            return b""
        name = f"event: {event['type']}\n".encode() if "type" in event else b""
        return name + b"data: " + rawjson.dumps(event) + b"\n\n"

    def _said(self, event: Block) -> Block | None:
        """One event without them; None where it was only about them."""
        for key in ("index", "output_index"):
            if key in event:
                block = event.get("content_block") or event.get("item") or {}
                if (place := self._place(event[key], block)) is None:
                    return None
                event = {**event, key: place}
        if "choices" in event:
            event = {**event, "choices": [self._choice(choice) for choice in event["choices"]]}
        for key in ("content", "output"):
            if isinstance(event.get(key), list):
                event = self._ended({**event, key: [b for b in event[key] if not self._is_muted(b)]})
        for key in ("response", "delta"):
            if isinstance(event.get(key), dict):
                event = {**event, key: self._said(event[key]) if key == "response" else self._ended(event[key])}
        return event

    def _choice(self, choice: Block) -> Block:
        key = "delta" if "delta" in choice else "message"
        said = dict(choice.get(key) or {})
        calls = said.pop("tool_calls", None) or []
        places = [(call, self._place(call.get("index", at), call)) for at, call in enumerate(calls)]
        kept = [
            {**call, **({"index": place} if "index" in call else {})} for call, place in places if place is not None
        ]
        return self._ended({**choice, key: said | ({"tool_calls": kept} if kept else {})})

    def _is_muted(self, block: Mapping[str, Any]) -> bool:
        return block.get("call_id", block.get("id")) in self._calls

    def _place(self, place: int, block: Mapping[str, Any]) -> int | None:
        """Where something stands once they are gone; None for one of them."""
        if self._is_muted(block):
            self._places.append(place)
        return None if place in self._places else place - sum(gone < place for gone in self._places)

    def _ended(self, said: Block) -> Block:
        """Who has nothing to call has ended."""
        return said if self._left else {**said, **{k: v for k, v in _ENDED.items() if said.get(k)}}
