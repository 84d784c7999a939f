"""The values everything is made of: what was said, where it stands in history, and what took its place.

Items are pure values and know nothing of storage. Identity is two keyed digests: `content` (equal content, equal
digest) and `id` (content chained to what came before it).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import accumulate
from secrets import token_hex
from typing import Any, Literal

from clew.core.rawjson import ordered, plain_bytes
from clew.errors import BadRequest

Kind = Literal["text", "reasoning", "call", "result", "media", "summary", "opaque"]
Role = Literal["system", "user", "assistant", "tool"]
Scope = str

# Keys of an edit's evidence under which it keeps words of what was said: whoever takes those away takes these.
LOG, STANDS, CLAIMS = "log", "stands", "claims"  # the last one of earlier versions
# Under which it keeps whose words its stand-ins quote: of what is pinned, one for each of them, in their order; of what
# they do not stand for. And under which, for which message.
PINS, BESIDE, ASKING = "pins", "beside", "asked"

SHORT = 10  # characters of an id that a person or a model sees: 40 bits, resolved within one lineage


@dataclass(frozen=True, slots=True)
class Opening:
    """The message an item opened: its keys apart from the parts that became items."""

    keys: Mapping[str, Any]
    bare: bool = False  # its content was a plain string, not a list of blocks


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Item:
    """One thing said. A pure value: equal content, equal item."""

    kind: Kind
    role: Role
    text: str = ""  # a call's arguments are its text, as JSON
    name: str = ""  # of the tool
    call_id: str = ""  # pairs a call with its result
    wire: Mapping[str, Any] | None = None  # the provider's block, verbatim, where the fields above do not say it all
    opens: Opening | None = None  # None: it continues the message before it
    mark: Mapping[str, Any] | None = None  # a cache mark: about the request, so no part of the content
    voice: str = field(default="", compare=False)  # what it is, where its text does not say so: a filler, a copy


@dataclass(frozen=True, slots=True)
class Node:
    """An item at a place in history."""

    id: str
    content: str
    item: Item = field(repr=False)


@dataclass(frozen=True, slots=True)
class Frame:
    """What a request holds beside its history: system prompt, tools, parameters."""

    format: str
    model: str = ""
    lead: tuple[Mapping[str, Any], ...] = ()  # system messages that open the list, verbatim
    body: Mapping[str, Any] = field(default_factory=dict)  # every key but the messages, verbatim
    system: str = ""  # all system text, for counting and display
    tools: tuple[Mapping[str, Any], ...] = ()
    served: str = ""  # by whom, and how, as far as a host says it: the name of an upstream, what headers ask for


@dataclass(frozen=True, slots=True)
class Edit:
    """`new` stands in for `old`. Recorded, never applied in place: so always undoable."""

    by: str  # the step that made it, with its settings
    old: tuple[str, ...]  # ids of consecutive nodes, at least one
    new: tuple[Node, ...]  # at least one: nothing vanishes without a trace
    evidence: Mapping[str, Any] = field(default_factory=dict)
    spent: int = 0  # tokens the step itself used

    @property
    def sources(self) -> tuple[str, ...]:
        """What the stand-ins stand for; a node that only moved within the span still stands itself."""
        moved = {n.id for n in self.new}
        return tuple(id for id in self.old if id not in moved)

    @property
    def stand_ins(self) -> tuple[Node, ...]:
        """The nodes that were not there before."""
        was = set(self.old)
        return tuple(n for n in self.new if n.id not in was)


def frozen(value: Any) -> Any:
    """JSON with tuples for lists: the garbage collector does not look at those again and again."""
    if isinstance(value, Mapping):
        return {key: frozen(part) for key, part in value.items()}
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


def new_id() -> str:
    """An id for a branch or a session, which nobody had before."""
    return token_hex(8)


class Digests:
    """Keyed digests for one tenant: another scope, or another store's secret, gives other ids."""

    __slots__ = ("_content", "_link", "_seal")

    def __init__(self, secret: bytes = b"", scope: Scope = "") -> None:
        key = blake2b(scope.encode("utf-8", "surrogatepass"), key=secret[:64], digest_size=32).digest()
        # A copied hash state starts faster than a new keyed one, and this runs for every item.
        self._content = blake2b(key=key, digest_size=16, person=b"clew content")
        self._link = blake2b(key=key, digest_size=16, person=b"clew link")
        self._seal = blake2b(key=key, digest_size=32, person=b"clew seal")

    def content(self, item: Item) -> str:
        """The digest of what was said, however it was wrapped."""
        state = self._content.copy()
        extra = extras(item.opens)
        name = item.name if item.kind in ("call", "reasoning") else ""
        # As sent, a stand-in is plain text: a host that sends it back must be recognised.
        kind = "text" if item.kind == "summary" else item.kind
        wire = None if _says_only_text(item) else item.wire
        head = [kind, item.role, item.call_id, name, extra, wire is not None]
        try:
            state.update(json.dumps(head, sort_keys=True).encode())
            body = item.text if wire is None else canonical(wire)
        except RecursionError:
            raise BadRequest("an item is nested too deeply") from None
        except (TypeError, ValueError) as error:
            raise BadRequest(f"an item contains a value that is not JSON: {error}") from None
        state.update(b"\n")
        state.update(body.encode("utf-8", "surrogatepass"))
        return state.hexdigest()

    def link(self, content: str, parents: Iterable[str]) -> str:
        """The id of a content after `parents`."""
        state = self._link.copy()
        state.update("\n".join((content, *parents)).encode("utf-8", "surrogatepass"))
        return state.hexdigest()

    def links(self, content: str, parents: Sequence[str], lengths: Iterable[int]) -> Iterator[str]:
        """The ids of a content after the first so many `parents`, for each of these lengths, the shortest first."""
        state, done = self._link.copy(), 0
        state.update(content.encode("utf-8", "surrogatepass"))
        for length in lengths:
            more = "".join(f"\n{parent}" for parent in parents[done:length])
            state.update(more.encode("utf-8", "surrogatepass"))
            done = length
            yield state.copy().hexdigest()

    def chain(self, items: Iterable[Item], parent: str = "") -> list[Node]:
        """Nodes for items said one after the other, the first of them after `parent`."""
        nodes = []
        for item in items:
            content = self.content(item)
            parent = self.link(content, (parent,))
            nodes.append(Node(parent, content, item))
        return nodes

    def run(self, chain: str, contents: Iterable[str]) -> str:
        """The digest of a whole history, continued from that of its beginning."""
        for content in contents:
            chain = self.link(content, (chain,))
        return chain

    def chains(self, contents: Iterable[str]) -> list[str]:
        """The digests of all beginnings of a history, the shortest first."""
        return list(accumulate(contents, lambda chain, content: self.link(content, (chain,)), initial=""))[1:]

    def handle(self, old: Sequence[str]) -> str:
        """The id by which a span is recalled: known before its stand-in is written, so the stand-in can name it."""
        return old[0] if len(old) == 1 else self.link("span", old)

    def frame(self, frame: Frame) -> str:
        """The digest of a frame's version."""
        state = self._content.copy()
        served = [frame.served] if frame.served else []
        state.update(_quickly([frame.format, list(frame.lead), dict(frame.body), *served]))
        return state.hexdigest()

    def seal(self, data: bytes) -> bytes:
        """What signs these bytes as this store's and this scope's: nobody can write it who has not the secret."""
        state = self._seal.copy()
        state.update(data)
        return state.digest()

    def parts(self, data: bytes) -> str:
        """The digest of what several versions of a frame have in common."""
        state = self._link.copy()
        state.update(data)
        return state.hexdigest()


def _says_only_text(item: Item) -> bool:
    """A result written as one text block says what the bare string says."""
    if item.kind != "result" or item.wire is None or item.wire.keys() != {"content"}:
        return False
    match item.wire["content"]:
        case [{"type": "text", "text": str(), **rest}]:
            return not rest.keys() - {"cache_control"}
    return False


def canonical(value: Any) -> str:
    """JSON with sorted keys and no cache marks."""
    try:
        text = _sorted(value)
    except TypeError:  # mappings that are no dicts
        return _sorted(_unmarked(value))
    return text if "cache_control" not in text else _sorted(_unmarked(value))


def _quickly(value: Any) -> bytes:
    """The same, faster; some characters and numbers are written otherwise."""
    try:
        data = ordered(value)
        return data if b"cache_control" not in data else ordered(_unmarked(value))
    except TypeError:
        return canonical(value).encode()


def _sorted(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=plain_bytes)


def extras(opens: Opening | None) -> dict[str, Any] | None:
    """The keys of a message that say something beyond its items; empty ones say nothing."""
    if opens is None or len(opens.keys) < 2:
        return None
    apart = _CARRIED | _NOTED if "tracking_id" in opens.keys else _CARRIED
    said = {k: v for k, v in opens.keys.items() if k not in apart and v not in (None, "", [], {})}
    return {k: v for k, v in said.items() if not k.startswith("__")} or None  # Copilot's notes on what it resumes


# Said by the items themselves, or about the message and not in it.
_CARRIED = frozenset({"role", "content", "tool_calls", "tool_call_id", "cache_control", "type", "id", "status"})
_NOTED = frozenset({"tracking_id", "metadata"})  # what Strands notes about its messages: no provider hears of it


def _unmarked(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {k: v if type(v) is str else _unmarked(v) for k, v in value.items() if k != "cache_control"}
    if kind is list or isinstance(value, list | tuple):
        return [_unmarked(v) for v in value]
    return value
