"""An answer of Chat Completions, put together from its chunks; servers differ, and each is taken as it is meant."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.core import rawjson
from clew.wire.formats.openai_chat.codec import REASONING
from clew.wire.formats.openai_chat.tags import Tagged
from clew.wire.formats.plain import text_of
from clew.wire.streams import pieces
from clew.wire.streams.faults import failure
from clew.wire.streams.pieces import AnswerMessage, Called, Piece, Spoken, StopReason, Text, Thought, ToolCall

Fragment = Mapping[str, Any]

_STOPS: Mapping[str, StopReason] = {"length": "length", "content_filter": "refused"}
_THOUGHTS = ("reasoning_content", "reasoning")  # a server that sends both says the same twice


class ChatAnswer:
    """What a model has said so far; of a server that does not stream, its whole answer is one chunk."""

    def __init__(self) -> None:
        self.over = False  # nothing more is to come
        self._texts: dict[str, list[str]] = {}
        self._content = Tagged()
        self._details: list[AnswerMessage] = []
        self._calls: list[_GrowingCall] = []
        self._reason: str | None = None
        self._usage: Fragment | None = None

    def add(self, event: Fragment) -> Sequence[Piece]:
        """Hear one chunk: what it adds."""
        if event.get("error"):
            raise failure(event["error"])
        self._usage = event.get("usage") or self._usage
        heard: list[Piece] = []
        for choice in event.get("choices") or ():
            if not choice.get("index"):
                heard += self._hear(choice.get("delta") or choice.get("message") or {})
                if reason := choice.get("finish_reason"):
                    self._reason = reason
                    heard += self._content.end()
        return heard

    def spoken(self) -> Spoken:
        """What was said."""
        texts = {key: "".join(parts) for key, parts in self._texts.items()}
        calls = [(growing, growing.call) for growing in self._calls]
        if self._reason is None:
            calls = [(growing, call) for growing, call in calls if call.raw and call.arguments is not None]
        said: AnswerMessage = {key: texts[key] for key in ("refusal", *_THOUGHTS) if key in texts}
        if self._details:
            said["reasoning_details"] = self._details
        if calls:
            said["tool_calls"] = [growing.wire for growing, _ in calls]
        content = texts.get("content")
        # Thoughts alone are no message.
        messages = [{"role": "assistant", "content": content, **said}] if content or calls or "refusal" in said else []
        text = "".join(self._content.text) + texts.get("refusal", "")
        read = [call for _, call in calls]
        return Spoken(messages, text, read, self._stop(read), self._reason, self._usage)

    def _stop(self, calls: list[ToolCall]) -> StopReason:
        if self._reason is None:
            return "cut"
        if self._texts.get("refusal"):
            return "refused"
        # Some servers say "stop" after calls, too.
        return _STOPS.get(self._reason) or ("calls" if calls else "end")

    def _hear(self, delta: Fragment) -> Iterable[Piece]:
        said = delta.get("content")
        if said and len(delta) == 1 and isinstance(said, str):  # most chunks
            self._texts.setdefault("content", []).append(said)
            return self._content.add(said)
        return self._hear_all(delta)

    def _hear_all(self, delta: Fragment) -> Iterator[Piece]:
        thoughts = [self._grow(key, delta.get(key)) for key in _THOUGHTS]
        if thought := next(filter(None, thoughts), ""):
            yield Thought(thought)
        self._add_details(delta.get(REASONING[-1]) or ())
        yield from self._content.add(self._grow("content", delta.get("content")))
        if refusal := self._grow("refusal", delta.get("refusal")):
            yield Text(refusal)
        for fragment in delta.get("tool_calls") or ():
            yield self._growing(fragment).add(fragment)

    def _grow(self, key: str, value: Any) -> str:
        if not value:
            return ""
        if text := text_of(value):
            self._texts.setdefault(key, []).append(text)
        return text

    def _growing(self, fragment: Fragment) -> "_GrowingCall":
        """The call that a fragment belongs to.

        Some servers give every call the index 0, and some repeat its id in every fragment: an id goes before an index.
        With neither, a fragment that names its tool is a new call.
        """
        id, index = fragment.get("id"), fragment.get("index")
        if id:
            same = [growing for growing in self._calls if growing.id == id]
        elif index is not None:
            same = [growing for growing in self._calls if growing.index == index]
        else:
            same = [] if (fragment.get("function") or {}).get("name") else self._calls
        if not same:
            same = [_GrowingCall(id or pieces.new_id(), index)]
            self._calls += same
        return same[-1]

    def _add_details(self, fragments: Iterable[Fragment]) -> None:
        """Keep what OpenRouter says of thoughts: text grows, what is sealed comes whole."""
        for fragment in fragments:
            last = self._details[-1] if self._details else {}
            key = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(fragment.get("type", ""))
            if key and all(last.get(name) == fragment.get(name) for name in ("type", "index")):
                grown = (last.get(key) or "") + (fragment.get(key) or "")
                last.update({name: value for name, value in fragment.items() if value is not None}, **{key: grown})
            else:
                self._details.append(dict(fragment))


@dataclass(slots=True)
class _GrowingCall:
    """A call whose arguments are still coming."""

    id: str
    index: Any
    kind: str = "function"
    name: str = ""
    more: AnswerMessage = field(default_factory=dict)  # what else a server says of it, such as Gemini's signatures
    parts: list[str] = field(default_factory=list)

    def add(self, fragment: Fragment) -> Called:
        self.kind = "custom" if fragment.get("custom") else self.kind
        said = fragment.get(self.kind) or {}
        self.name = said.get("name") or self.name
        self.more |= {k: v for k, v in fragment.items() if k not in ("id", "index", "type", self.kind)}
        part = said.get("input" if self.kind == "custom" else "arguments") or ""
        if not isinstance(part, str):
            part = rawjson.dumps(part).decode()
        self.parts.append(part)
        return Called(self.id, self.name, part)

    @property
    def call(self) -> ToolCall:
        return pieces.call(self.id, self.name, "".join(self.parts))

    @property
    def wire(self) -> AnswerMessage:
        raw = "".join(self.parts)
        # Templates of open models read arguments as JSON, which nothing at all is not.
        written = {"input": raw} if self.kind == "custom" else {"arguments": raw or "{}"}
        said = {"name": self.name, **written}
        return {"id": self.id, "type": self.kind, self.kind: said, **self.more}
