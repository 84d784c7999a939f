"""A prompt cache as providers have it, so that a test can see what a request would have hit."""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from clew.catalog.usage import Spent
from clew.core import rawjson

CachedBody = dict[str, Any]  # a request of any format
CachedBlock = tuple[bytes, bool]  # as it is read, and whether a mark stands on it

_LOOKBACK = 20  # blocks before a mark at which Anthropic looks for what it wrote earlier
_SYSTEMS = ("system", "instructions", "systemInstruction", "system_instruction")
_CONTENTS = ("content", "parts")
_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})


class Cache:
    """What was read before: of OpenAI's requests every prefix, of Anthropic's those that end at a mark."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()  # whole prompts
        self._written: set[bytes] = set()  # digests of prompts up to a mark

    def read(self, blocks: list[CachedBlock], marked: bool) -> Spent:
        """What a request takes, and how much of it comes from the cache; with `marked`, only marks count."""
        whole = b"".join(text for text, _ in blocks)
        if marked:
            read, written = self._at_marks(blocks)
        else:
            read, written = max((shared(whole, seen) for seen in self._seen), default=0), 0
        return Spent(tokens(whole), cache_read=read // 4, cache_write=max(written - read, 0) // 4)

    def write(self, blocks: list[CachedBlock]) -> None:
        """Keep what a request sent."""
        self._seen.add(b"".join(text for text, _ in blocks))
        self._written |= {digest for digest, _, marked in _prefixes(blocks) if marked}

    def _at_marks(self, blocks: list[CachedBlock]) -> tuple[int, int]:
        """Bytes found and bytes that will be, looking back from every mark."""
        prefixes = list(_prefixes(blocks))
        marks = [i for i, (_, _, marked) in enumerate(prefixes) if marked]
        near = {i for mark in marks for i in range(max(0, mark - _LOOKBACK), mark + 1)}
        found = max((prefixes[i][1] for i in near if prefixes[i][0] in self._written), default=0)
        return found, prefixes[marks[-1]][1] if marks else 0


def prompt(body: CachedBody) -> Iterator[CachedBlock]:
    """A request in the order in which it is read: model, tools, system, messages, and no marks.

    The keys of a block may come in any order. What is inside them may not: a provider reads arguments and schemas as
    they are written.
    """
    yield f"{body.get('model')}\n".encode("utf-8", "surrogatepass"), False
    for tool in _objects(body.get("tools")):
        yield _plain(tool)
    system = next((body[key] for key in _SYSTEMS if body.get(key)), "")
    yield from _parts({"role": "system"}, _content(system) if isinstance(system, Mapping) else system)
    for message in spoken(body):
        yield from _parts({k: v for k, v in message.items() if k not in _CONTENTS}, _content(message))


def spoken(body: CachedBody) -> list[Mapping[str, Any]]:
    """The messages of a request."""
    said = next((body[key] for key in ("messages", "input", "contents") if key in body), None)
    return [{"role": "user", "content": said}] if isinstance(said, str) else _objects(said)


def opening(body: CachedBody) -> bytes:
    """How a conversation begins: the first message that is neither a system prompt nor a developer's."""
    said = (m for m in spoken(body) if m.get("role") not in ("system", "developer"))
    return b"".join(text for first in list(said)[:1] for text, _ in _parts({}, _content(first)))


def _content(message: Mapping[str, Any]) -> Any:
    return next((message[key] for key in _CONTENTS if message.get(key)), "")


def _parts(head: Mapping[str, Any], content: Any) -> Iterator[CachedBlock]:
    yield _plain(head)
    yield from map(_plain, _objects([{"type": "text", "text": content}] if isinstance(content, str) else content))


def _plain(block: Mapping[str, Any]) -> CachedBlock:
    kept = {key: block[key] for key in sorted(block) if key not in _MARKS}
    return rawjson.dumps(kept), kept.keys() != block.keys()


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def _prefixes(blocks: list[CachedBlock]) -> Iterator[tuple[bytes, int, bool]]:
    """The digest, the length and the mark of all that is read up to each block."""
    so_far, length = blake2b(digest_size=16), 0
    for text, marked in blocks:
        so_far.update(text)
        length += len(text)
        yield so_far.digest(), length, marked


def shared(one: bytes, other: bytes) -> int:
    """Of how many bytes two texts have the same beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def tokens(text: bytes) -> int:
    """About how many tokens a text has."""
    return max(1, len(text) // 4)


def counted(body: CachedBody) -> CachedBody:
    """The request that is counted: of Gemini it may stand inside, and then it names its model itself."""
    inside = body.get("generateContentRequest") or body.get("generate_content_request")
    return inside if isinstance(inside, dict) else body
