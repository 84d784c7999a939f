"""Streams of Chat Completions as one."""

from collections.abc import Iterable

from clew.wire.formats.plain import Block
from clew.wire.streams.joined import HeardEvent, IsOurs, JoinedStream
from clew.wire.streams.pieces import Called

GAP = "\n\n"  # between the texts of two answers: there are no blocks


class ChatStream(JoinedStream):
    """Of Chat Completions: fragments of calls have an index, all else is one text."""

    def __init__(self, is_ours: IsOurs) -> None:
        super().__init__(is_ours)
        self._id: str | None = None
        self._places: dict[str, int] = {}  # of the calls that are the caller's
        self._unnamed: dict[str, list[Block]] = {}  # fragments of calls whose names are not known yet
        self._spoke = False  # whether there were words
        self._gap = False  # whether more would follow those of an earlier answer

    def _passes(self, event: HeardEvent) -> bool:
        choices = event.block.get("choices") if event.block else None
        plain = self._spoke and not self._later and not event.called
        return plain and bool(choices) and not any(choice.get("finish_reason") for choice in choices or ())

    def _ends(self, said: Block) -> bool:
        return any(choice.get("finish_reason") for choice in said.get("choices") or ())

    def _is_last(self, said: Block) -> bool:
        return not said

    def _shows(self, told: Block) -> bool:
        deltas = [choice.get("delta") or {} for choice in told.get("choices") or ()]
        return any(value for delta in deltas for key, value in delta.items() if key != "role")

    def _passed_on(self, event: HeardEvent) -> Block | None:
        said = event.block or {}
        self._id = self._id or said.get("id")
        if not self._later and not event.called:  # most events: words of the first answer
            self._spoke = self._spoke or any((c.get("delta") or {}).get("content") for c in said.get("choices") or ())
            return said
        called = iter(event.called)
        choices = said.get("choices") or []
        told = [self._choice(choice, called) for choice in choices]
        changed = any(new is not old for new, old in zip(told, choices, strict=True))
        if changed and not said.get("usage") and not any(c.get("delta") or c.get("finish_reason") for c in told):
            return None
        if self._later and said.get("id") != self._id:
            return {**said, "id": self._id, "choices": told}
        return {**said, "choices": told} if changed else said

    def _choice(self, choice: Block, called: Iterable[Called]) -> Block:
        delta = choice.get("delta") or {}
        new = dict(delta)
        if self._later:
            new.pop("role", None)  # SDKs put strings together, this one too
        if self._gap and isinstance(delta.get("content"), str) and delta["content"].strip():
            new["content"] = GAP + delta["content"]
        if delta.get("content"):
            self._gap, self._spoke = False, True
        if fragments := delta.get("tool_calls"):
            kept = [f for fragment, call in zip(fragments, called, strict=False) for f in self._kept(fragment, call)]
            new["tool_calls"] = kept
            if not kept:
                del new["tool_calls"]
        return choice if new == delta else {**choice, "delta": new}

    def _kept(self, fragment: Block, call: Called) -> list[Block]:
        """The fragments of the caller's calls that can be told now."""
        if not call.name:
            self._unnamed.setdefault(call.id, []).append(fragment)
            return []
        came = [*self._unnamed.pop(call.id, ()), fragment]
        if self._is_ours(call.name):
            return []
        place = self._places.setdefault(call.id, len(self._places))
        return [{**f, "index": place} if f.get("index") != place else f for f in came]

    def _unended(self, event: HeardEvent) -> Block | None:
        said = event.block or {}
        choices = [{**choice, "finish_reason": None} for choice in said.get("choices") or () if choice.get("delta")]
        told = self._passed_on(HeardEvent(b"", {**said, "choices": choices}, event.called)) if choices else None
        return told if told and self._shows(told) else None

    def _ended(self, event: HeardEvent, muted: bool) -> Block | None:
        told = self._passed_on(event) or {}
        if self._unnamed and told.get("choices"):  # calls of nothing: that is for the caller to see
            [choice, *_] = told["choices"]
            nameless = [fragment for fragments in self._unnamed.values() for fragment in fragments]
            told = {**told, "choices": [{**choice, "delta": {**(choice.get("delta") or {}), "tool_calls": nameless}}]}
            self._unnamed = {}
        if not muted:
            return told
        stopped = [{**c, "finish_reason": "stop"} if c.get("finish_reason") else c for c in told.get("choices") or ()]
        return {**told, "choices": stopped}

    def _reset(self) -> None:
        self._gap = self._spoke
        self._id = self._id if self._later else None
