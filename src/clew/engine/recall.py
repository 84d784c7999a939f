"""From what a person or a model writes, an id or a question, to the nodes that it may mean."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

from clew.core.bounds import TEXT_SEARCHED
from clew.core.items import Digests, Scope
from clew.core.threads import in_thread
from clew.core.view import View
from clew.errors import Ambiguous, Conflict, NotFound
from clew.steps.expand import question, recalled, room, sought
from clew.store.protocol import Store
from clew.store.records import Place
from clew.store.trace import Trace
from clew.text.answers import answers, asked_now, is_asked
from clew.text.search import Found, Index, texts
from clew.tokens.target import Target

Load = Callable[[Scope, str, int | None], Awaitable[Trace]]  # as `Store.load`, or from memory

BODIES = 200  # that the index of the store may propose, the best by its own measure
BODIES_OF_OTHERS = 20_000  # that it may propose where most are not the asker's
NEWEST = 50  # items that are looked at whatever the index says: it does not know the middle of a name
REWRITTEN = 200  # items that a client wrote otherwise later, of which the first writing is read
CHARACTERS = TEXT_SEARCHED  # looked at in all
QUESTIONS, REACH = 20, 32  # that were asked before, and the items after each among which its answer is looked for
# The same for what is put beside a message that did not ask for it; with less room than this, nothing is.
BODIES_BESIDE, CHARACTERS_BESIDE, LEAST_ROOM = 40, 200_000, 100


async def resolve(
    store: Store,
    scope: Scope,
    id: str,
    branch: str | None = None,
    load: Load | None = None,
    until: int | None = None,
) -> str:
    """The whole id; with `branch`, only of something in that branch's own past, until an event."""
    short = short_id(id)
    found = await store.resolve(scope, short)
    if branch is not None:
        own = {id for trace in await lineage(store, scope, branch, until, load) for id in _ids(store, scope, trace)}
        found = [f for f in found if f in own]
    if not found and (purged := await store.purged(scope, short)):
        raise purged
    if not found:
        raise NotFound(f"no item has the id {id}")
    if len(found) > 1:
        raise Ambiguous(f"{id} matches {len(found)} ids; give more of it: {', '.join(f[:16] for f in found[:5])}")
    return found[0]


def short_id(id: str) -> str:
    """The beginning of an id, as somebody wrote it. Raises `NotFound` for what can be none."""
    short = id.strip().lower()
    if not short or len(short) > 32 or set(short) - set("0123456789abcdef"):
        raise NotFound(f"{id[:40]!r} is not an id: ids are hexadecimal, for example 3fa94c21b0")
    return short


async def lineage(
    store: Store, scope: Scope, branch: str, until: int | None = None, load: Load | None = None
) -> list[Trace]:
    """A branch, after those that it comes after without having their events: a handoff, a task, a sub-agent."""
    load = load or store.load
    before = [await load(scope, id, last) for id, last in await store.ancestry(scope, branch)]
    return [*reversed(before), await load(scope, branch, until)]


def _ids(store: Store, scope: Scope, trace: Trace) -> set[str]:
    digests = Digests(store.secret, scope)
    ids = {p.id for p in trace.said} | set(trace.alias.values())
    for edit in (*trace.edits, *trace.undone):
        handles = digests.handle(edit.old), edit.evidence.get("handle", edit.old[0])
        ids.update(edit.old, (n.id for n in edit.new), handles)
    return ids


async def candidates(
    store: Store, scope: Scope, text: str, branch: str, load: Load | None = None, until: int | None = None
) -> Index:
    """What was said on a branch until an event, or before it, that may answer a question."""
    said = await remembered(store, scope, await lineage(store, scope, branch, until, load))
    return await among(store, scope, text, said)


async def remembered(store: Store, scope: Scope, traces: Sequence[Trace]) -> list[Place]:
    """What was said on these; of the newest results that their client shortened to save room, all that they were."""
    rewritten = ((p.id, t.alias[p.id]) for t in reversed(traces) for p in reversed(t.said) if p.id in t.alias)
    firsts = dict(islice(rewritten, REWRITTEN))
    try:
        nodes = await store.nodes(scope, [*firsts.values()]) if firsts else {}
    except Conflict:  # one was purged meanwhile
        nodes = {}
    whole = {
        id: Place(first, n.content)
        for id, first in firsts.items()
        if (n := nodes.get(first)) and n.item.kind == "result"
    }
    return [whole.get(place.id, place) for trace in traces for place in trace.said]


async def among(
    store: Store,
    scope: Scope,
    text: str,
    said: Sequence[Place],
    bodies: int = BODIES,
    newest: int = NEWEST,
    characters: int = CHARACTERS,
    own: bool = True,
) -> Index:
    """Of these, what may answer a question, each with its neighbours: a call names what its result is.

    `own`: also what clients say of their own.
    """
    places = {p.content: i for i, p in enumerate(said)}  # said twice: the last time
    found = await store.search(scope, text, list(places), bodies)
    beside = [at for content in found for at in range(places[content] - 1, places[content] + 2)]
    best = dict.fromkeys([*beside, *reversed(range(len(said) - newest, len(said)))])
    chosen = [at for at in best if 0 <= at < len(said)]
    nodes = dict(await store.nodes(scope, [said[at].id for at in chosen]))
    asked = [at for at in (places[content] for content in found) if is_asked(nodes[said[at].id])][:QUESTIONS]
    spans = [range(at, min(len(said), at + REACH)) for at in asked]
    missing = dict.fromkeys(said[at].id for span in spans for at in span if said[at].id not in nodes)
    nodes |= await store.nodes(scope, list(missing))
    answered = {id: by for span in spans for id, by in answers(nodes[said[at].id] for at in span).items()}
    at_of = {said[at].id: at for span in spans for at in span}
    chosen = list(dict.fromkeys([*(at_of[id] for id in answered.values()), *chosen]))
    now = asked_now([nodes[place.id] for place in said[max(0, len(said) - newest) :]])
    answered.pop(now, None)  # what the assistant says while it is at it is no answer yet
    sizes = accumulate(len(nodes[said[at].id].item.text) for at in chosen)
    within = sorted(at for at, size in zip(chosen, sizes, strict=True) if size <= characters or at == chosen[0])
    # In a thread: it may take most of a second, for which other turns need not wait.
    return await in_thread(lambda: Index(texts((nodes[said[at].id] for at in within), own), answered, now))


async def beside_newest(store: Store, scope: Scope, trace: Trace, view: View, target: Target) -> View:
    """The view with what was said about the newest message, and is out of view, beside it."""
    asked = question(view) if view.edits else None  # without an edit, all is in view
    if asked is None or (most := room(view, target)) < LEAST_ROOM:
        return view
    shown = {n.id for n in view.nodes} | {*trace.alias.values()}
    stored = trace.calls[-1][1] if trace.calls else 0  # what is said in this very turn is not there yet
    if stored == len(trace.said):  # it is asked again, as after an error: with what was beside it then
        return view
    said = zip(trace.said, await remembered(store, scope, [trace]), strict=True)
    # Of a result that its client shortened, what it left out is not in view.
    away = [whole for place, whole in islice(said, stored) if whole is not place or place.id not in shown]
    if not away:
        return view
    try:
        index = await among(store, scope, sought(asked.text), away, BODIES_BESIDE, 0, CHARACTERS_BESIDE, False)
    except Conflict:  # it is not all there, or no longer: nobody asked for it
        return view
    return await in_thread(lambda: recalled(view, target, asked, index, most))


class Hit(NamedTuple):
    """Something found, and the branch it was first said on."""

    branch: str
    found: Found


async def everywhere(
    store: Store, scope: Scope, text: str, limit: int, own: Mapping[str, str] | None = None
) -> list[Hit]:
    """What was said about something anywhere in a scope: for people only, no model may ask this.

    With `own`, ids of nodes with a branch each, only what these say: what a model may see is its user's word.
    """
    contents, branch_of = await _said_about(store, scope, text, own)
    nodes = (await store.nodes(scope, list(branch_of))).values()
    # Said in several places: one of them will do. What stands in for others, nobody said.
    once = {n.content: n for n in nodes if n.item.kind != "summary"}
    said = [once[content] for content in contents if content in once][:BODIES]
    read = accumulate(len(node.item.text) for node in said)
    within = [node for node, size in zip(said, read, strict=True) if size <= CHARACTERS or node is said[0]]
    index = await in_thread(lambda: Index(texts(within)))
    return [Hit(branch_of[found.id], found) for found in index.find(text, limit)]


async def _said_about(
    store: Store, scope: Scope, text: str, own: Mapping[str, str] | None
) -> tuple[list[str], dict[str, str]]:
    """Contents that the index proposes, best first, and the nodes that say them, each with a branch."""
    bodies = BODIES
    while True:
        contents = await store.search(scope, text, None, bodies)
        places = await store.places(scope, contents)
        if own is None:
            return contents, dict(places)
        found = {id: own[id] for id, _ in places if id in own}
        # What others say of it may stand before it.
        if len(found) >= BODIES or len(contents) < bodies or bodies >= BODIES_OF_OTHERS:
            return contents, found
        bodies *= 10
