"""What is done with a conversation: two acts, each a pure function of what was said, without model or network."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

from clew.compression import compress
from clew.core.items import Item
from clew.sessions.transcripts import Transcript
from clew.text.search import wording
from clew.wire.formats import named
from clew.wire.rules.check import check

BatchRecord = dict[str, Any]
FRAME_KEYS = ("system", "instructions", "systemInstruction", "tools", "toolConfig")  # what goes along with messages
EXCERPT_BEFORE, EXCERPT_AFTER = 60, 240  # characters beside what was found; whole words of them


class BatchAct(Protocol):
    """An act, with what a user set of it; two with the same settings do the same."""

    name: ClassVar[str]

    def settings(self) -> dict[str, Any]:
        """What a user set."""
        ...

    def needs(self, data: bytes) -> bool:
        """Whether a conversation has to be read for it; where not, it has no record."""
        ...

    def __call__(self, transcript: Transcript) -> BatchRecord | None:
        """The record of a conversation; None: it has none."""
        ...


@dataclass(frozen=True)
class BatchCompress:
    """Make it fit a number of tokens."""

    name: ClassVar[str] = "compress"
    target: int
    model: str = ""
    preset: str = "default"

    def settings(self) -> dict[str, Any]:
        return asdict(self)

    def needs(self, data: bytes) -> bool:
        return True

    def __call__(self, transcript: Transcript) -> BatchRecord:
        body, list_key = transcript.body(), named(transcript.format).LIST
        done = compress(
            body[list_key],
            model=self.model or transcript.model,
            target_tokens=self.target,
            format=transcript.format,
            preset=self.preset,
        )
        broken = _broken({**body, list_key: done.messages}, transcript.format)
        if broken:
            broken -= _broken(body, transcript.format)
        return {
            "tokens_before": done.tokens_before,
            "tokens_after": done.tokens_after,
            "exact": done.exact,
            "edits": len(done.edits),
            "broken_rules": sorted(broken),  # that the original did not break
            "recall": done.places(),
            "messages": done.messages,
            "frame": {key: value for key, value in body.items() if key in FRAME_KEYS},
        }


def _broken(body: Mapping[str, Any], format: str) -> set[str]:
    return {one.rule for one in check(body, format)}


@dataclass(frozen=True)
class BatchSearch:
    """Find the messages that hold all of some words."""

    name: ClassVar[str] = "search"
    text: str
    limit: int = 20  # hits of a conversation that are shown; all are counted

    def settings(self) -> dict[str, Any]:
        return asdict(self)

    def needs(self, data: bytes) -> bool:
        """A word of ASCII stands in JSON as it is, unless somebody wrote it in escapes."""
        if b"\\u00" in data:
            return True
        low = data.lower()
        return all(word.lower().encode() in low for word in self.words if word.isalnum() and word.isascii())

    @cached_property
    def words(self) -> list[str]:
        """What has to be there; what stands between quotation marks is one word."""
        return [one or two for one, two in re.findall(r'"([^"]+)"|([^\s"]+)', self.text)]

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        return [re.compile(r"\s+".join(map(re.escape, word.split())), re.IGNORECASE) for word in self.words]

    def __call__(self, transcript: Transcript) -> BatchRecord | None:
        hits: list[dict[str, Any]] = []
        number = 0
        codec = named(transcript.format)
        for n, message in enumerate(transcript.messages):
            for item in codec.read(message, f"{codec.LIST}[{n}]") if n >= transcript.shared else ():
                if (hit := self._hit(item, n)) is not None:
                    number += 1
                    hits += [hit] if number <= self.limit else []
        return {"hits": number, "found": hits} if number else None

    def _hit(self, item: Item, message: int) -> dict[str, Any] | None:
        text = wording(item)
        found = [match for pattern in self._patterns if (match := pattern.search(text))]
        if len(found) < len(self._patterns):
            return None
        first = min(found, key=lambda match: match.start())
        return {
            "message": message,
            "role": item.role,
            "kind": item.kind,
            "name": item.name,
            "line": text.count("\n", 0, first.start()) + 1,
            "excerpt": _around(text, first),
        }


def _around(text: str, found: re.Match[str]) -> str:
    """What was found, with whole words before and after it."""
    before, after = text[: found.start()][-EXCERPT_BEFORE:], text[found.end() :][:EXCERPT_AFTER]
    if len(before) < found.start():
        before = re.sub(r"^\S+", "", before) or before
    if found.end() + len(after) < len(text):
        after = re.sub(r"\S+$", "", after) or after
    return f"{before}{found[0]}{after}".strip()
