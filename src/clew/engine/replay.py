"""Views from the log: what a branch shows, or what it sent last."""

from collections.abc import Mapping
from dataclasses import replace as with_

from clew.core.edits import Edits
from clew.core.items import Digests, Frame, Item, Node, Scope
from clew.core.threads import LONG, in_thread_if
from clew.core.view import View, fold
from clew.recognition.continuation import Recognition
from clew.recognition.other_format import native
from clew.secrets.guard import Guard
from clew.store.protocol import Store
from clew.store.records import ABSENT
from clew.store.trace import Trace
from clew.wire.rules.binding import binds_alike


async def replay(store: Store, scope: Scope, trace: Trace, frame: Frame, items: Mapping[str, Item]) -> View:
    """A branch as its edits show it; `items` are those that need no reading."""
    view = await outlined(store, scope, trace, frame, items)
    missing = [n.id for n in view.nodes if n.item is ABSENT]
    stored = await store.nodes(scope, missing) if missing else {}
    nodes = tuple(stored.get(n.id, n) for n in view.nodes) if stored else view.nodes
    if trace.made_in:
        nodes = await native(store, scope, trace, frame.format, nodes, items)
    return with_(view, nodes=nodes)


async def outlined(store: Store, scope: Scope, trace: Trace, frame: Frame, items: Mapping[str, Item]) -> View:
    """The same without the words of what would have to be read."""
    edits, pins = list(trace.edits), trace.pins()
    # Events may happen to the branch while a thread folds it.
    said, alias, gone, loose = list(trace.said), dict(trace.alias), set(trace.gone), set(trace.loose)
    patched = trace.patched

    def folded() -> tuple[Node, ...]:
        nodes = [Node(p.id, p.content, items.get(p.id, ABSENT)) for p in said]
        return fold(nodes, edits, alias, gone, loose, patched)

    nodes = await in_thread_if(len(said) > LONG, folded)
    return View(frame, nodes, Digests(store.secret, scope), Edits(edits), pins)


async def counted(store: Store, scope: Scope, trace: Trace, found: Recognition) -> tuple[View, int, int] | None:
    """What a branch that comes from the log sent last, the provider's count, and ours before; None without."""
    if not trace.reported or (said := trace.calls[-1][1]) > len(trace.said):
        return None
    sent = with_(trace, said=trace.said[:said])  # what was said since is no part of it
    view = await replay(store, scope, sent, await store.frame(scope, trace.frame), found.sent())
    return view, trace.reported, trace.predicted


async def sent_last(store: Store, scope: Scope, found: Recognition, guard: Guard, shown: View) -> View | None:
    """What a branch that comes from the log sent last, in the frame of that call; None where nobody needs to know."""
    if not any(n.item.kind == "reasoning" for n in shown.nodes):
        return None
    if found.trace.calls:
        branch = found.fork.parent if found.fork else found.trace.branch
        trace = await store.load(scope, branch, found.trace.calls[-1][0])
    elif found.keeps_all and found.origin and found.origin.parent:
        # Asked beside a conversation: there it was thought, after what was sent there.
        trace = await store.load(scope, found.origin.parent)
    else:
        return None
    frame = await store.frame(scope, trace.frame)
    # In the log, secrets are masked: what differs only by that does not differ.
    same = binds_alike(frame, guard.frame(shown.frame))
    return await replay(store, scope, trace, shown.frame if same else frame, {n.id: n.item for n in shown.nodes})
