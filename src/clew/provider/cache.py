"""A prompt cache as providers have it, so that a test can see what a request would have hit."""

import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from clew.usage import Spent

Body = dict[str, Any]

_LOOKBACK = 20  # blocks before a mark at which Anthropic looks for what it wrote earlier
_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})


class Cache:
    """What was read before: of OpenAI's requests every prefix, of Anthropic's those that end at a mark."""

    def __init__(self) -> None:
        self._seen: list[str] = []  # whole prompts
        self._written: set[str] = set()  # prompts up to a mark

    def read(self, body: Body, format: str) -> Spent:
        """What a request takes, and how much of it comes from the cache."""
        blocks = list(_blocks(body, format))
        whole = "".join(text for text, _ in blocks)
        if format == "anthropic":
            read, written = self._at_marks(blocks)
        else:
            read, written = max((_shared(whole, seen) for seen in self._seen), default=0), 0
        return Spent(tokens(whole), cache_read=read // 4, cache_write=max(written - read, 0) // 4)

    def write(self, body: Body, format: str) -> None:
        """Keep what a request sent."""
        blocks = list(_blocks(body, format))
        self._seen.append("".join(text for text, _ in blocks))
        self._written |= {prefix for prefix, marked in _prefixes(blocks) if marked}

    def _at_marks(self, blocks: list[tuple[str, bool]]) -> tuple[int, int]:
        """Characters found and characters that will be, looking back from every mark."""
        prefixes = list(_prefixes(blocks))
        marks = [i for i, (_, marked) in enumerate(prefixes) if marked]
        near = [prefixes[i][0] for mark in marks for i in range(max(0, mark - _LOOKBACK), mark + 1)]
        found = max((len(prefix) for prefix in near if prefix in self._written), default=0)
        return found, len(prefixes[marks[-1]][0]) if marks else 0


def _blocks(body: Body, format: str) -> Iterator[tuple[str, bool]]:
    """The prompt in the order in which it is read, a text for each block and whether it is marked."""
    yield f"{body.get('model')}\n", False
    for tool in body.get("tools") or ():
        yield _plain(tool)
    yield from _parts("system", body.get("system") or body.get("instructions") or "")
    said = body["input" if format == "openai_responses" else "messages"]
    for message in [{"role": "user", "content": said}] if isinstance(said, str) else said:
        keys = {k: v for k, v in message.items() if k != "content"}
        yield from _parts(json.dumps(keys, sort_keys=True), message.get("content") or "")


def _parts(head: str, content: Any) -> Iterator[tuple[str, bool]]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    yield head, False
    yield from map(_plain, parts)


def _plain(block: Mapping[str, Any]) -> tuple[str, bool]:
    """A block without its mark, and whether it had one."""
    kept = {key: value for key, value in block.items() if key not in _MARKS}
    return json.dumps(kept, sort_keys=True), kept.keys() != block.keys()


def _prefixes(blocks: list[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    so_far = ""
    for text, marked in blocks:
        so_far += text
        yield so_far, marked


def _shared(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def tokens(text: str) -> int:
    """About how many tokens a text has."""
    return max(1, len(text) // 4)
