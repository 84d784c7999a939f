"""Conversations that `export_log.py` wrote, back into a store: this one, another one, another scope."""

from collections.abc import Iterable
from dataclasses import replace as with_

from clew.core.items import Digests, Edit, Node, Scope
from clew.core.view import fold
from clew.errors import Conflict
from clew.recognition.recognise import first_branch
from clew.sessions.import_lines import ExportBranch, ExportFile, read_export
from clew.store.protocol import Store
from clew.store.records import ABSENT, Batch, Began, Call, ClientEdit, Event, Fork, Origin, Revert, Said
from clew.store.rows import event_of
from clew.store.trace import Trace, apply
from clew.store.upkeep import Progress

ODD = "%d compactions have notes that this clew does not know; what they stand for is folded anew"


async def take_in(
    store: Store,
    scope: Scope,
    lines: Iterable[bytes],
    name: str | None = None,
    progress: Progress | None = None,
    notes: list[str] | None = None,
) -> list[str]:
    """Write exported conversations to a store; the branches that are new in it, the ones asked for last.

    With `name`, the last one gets that name: so a conversation can be beside itself. What is to be said of them is
    added to `notes`.
    """
    file = read_export(lines, Digests(store.secret, scope))
    if file.odd and notes is not None:
        notes.append(ODD % file.odd)
    here = {b.id for b in await store.branches(scope)}
    last = next(reversed(file.branches.values()))
    if name is not None:
        last.name = name
        file.rename(last, await first_branch(store, scope, file.digests, name))
    made = []
    for done, branch in enumerate(file.branches.values()):
        if progress:
            progress(done, len(file.branches))
        elsewhere = file.digests.link(branch.id, ("import",))[:16]
        if elsewhere in here and branch.id not in file.names:
            file.rename(branch, elsewhere)
        if file.names.get(branch.id, branch.id) in here:
            await _go_on(store, scope, branch, file)
            await _label(store, scope, branch, file)
            continue
        try:
            await store.write(scope, _batch(file, branch))
        except Conflict:  # another scope of this store has it under its own name
            file.rename(branch, elsewhere)
            await store.write(scope, _batch(file, branch))
        made.append(file.names.get(branch.id, branch.id))
        await store.label(scope, made[-1], branch.tags, branch.archived or None)
    return made


async def _label(store: Store, scope: Scope, branch: ExportBranch, file: ExportFile) -> None:
    """Give a branch that is here its tags, if it has none: the import that wrote it may have been cut off before."""
    id = file.names.get(branch.id, branch.id)
    if branch.tags or branch.archived:
        listed = await store.sessions(scope, id)
        if not any(session.tags or session.archived for session in listed):
            await store.label(scope, id, branch.tags, branch.archived or None)


async def _go_on(store: Store, scope: Scope, branch: ExportBranch, file: ExportFile) -> None:
    """Add what happened since to a branch that is here already. Raises `Conflict` where another thing happened here."""
    id = file.names.get(branch.id, branch.id)
    known = [(event.seq, event.row.kind, tuple(event.row.new)) for event in await store.events(scope, id)]
    told = [(seq, row.kind, tuple(row.new)) for seq, _, row in branch.rows]
    both = min(len(known), len(told))
    if known[:both] != told[:both]:
        raise Conflict(
            f"{branch.name or branch.id} already exists with different content; import it under another name"
        )
    if len(told) > both:
        whole = _batch(file, branch)
        rest, times = whole.events[both:], whole.times[both:]
        more = Batch(id, whole.seq + both, rest, heads=whole.heads, frames=whole.frames, times=times)
        await store.write(scope, more)


def _batch(file: ExportFile, branch: ExportBranch) -> Batch:
    """All of a branch in one transaction, its calls with digests of this store."""
    events, heads = _rekeyed(file, branch)
    used = {event.frame for event in events if isinstance(event, Call)}
    fork = Fork(file.names.get(branch.parent, branch.parent), branch.parent_seq or 0) if branch.parent else None
    after = file.names.get(branch.after, branch.after) if branch.after else None
    return Batch(
        file.names.get(branch.id, branch.id),
        0 if fork is None else fork.seq + 1,
        tuple(events),
        opened=True,
        fork=fork,
        session=branch.name,
        heads=tuple(dict.fromkeys(heads)),
        frames=tuple((digest, frame) for digest, frame in dict(file.frames).items() if digest in used),
        origin=None if fork else Origin(branch.cause, after, branch.parent_seq),
        times=tuple(at for _, at, _ in branch.rows),
        begun=branch.at,
    )


def _rekeyed(file: ExportFile, branch: ExportBranch) -> tuple[list[Event], list[str]]:
    """The events of a branch with digests of this store, and those of the histories and views it knew."""
    digests, trace = file.digests, Trace(branch.id)
    if branch.parent:
        apply(trace, *file.past(file.branches[branch.parent], branch.parent_seq))
    sent, said, stale = "", digests.run("", (p.content for p in trace.said)), True
    events: list[Event] = []
    heads: list[str] = []
    for seq, _, row in branch.rows:
        event = event_of(row, branch.id, seq, file.nodes.__getitem__)
        apply(trace, event)
        match event:
            case Said(nodes):
                sent, said = (digests.run(chain, (n.content for n in nodes)) for chain in (sent, said))
            case ClientEdit():
                said, stale = digests.run("", (p.content for p in trace.said)), True
            case Began(session):
                event = with_(event, session=file.names.get(session, session))
            case Revert(sessions=sessions):
                event, stale = with_(event, sessions=tuple(file.names.get(s, s) for s in sessions)), True
            case Edit():
                stale = True
            case Call():
                sent, stale = _sent(digests, trace) if stale else sent, False
                event = with_(event, digest=digests.link(event.frame, (sent,)))
                heads += [sent, said]
        events.append(event)
    return events, heads


def _sent(digests: Digests, trace: Trace) -> str:
    said = [Node(p.id, p.content, ABSENT) for p in trace.said]
    nodes = fold(said, trace.edits, trace.alias, trace.gone, trace.loose, trace.patched)
    return digests.run("", (n.content for n in nodes))
