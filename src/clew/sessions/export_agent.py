"""A conversation of the log as a session of another agent: all that was said, and where it was compacted."""

from collections.abc import Mapping, Sequence

from clew.core.items import Edit, Node, Scope
from clew.core.view import originals
from clew.engine.engine import Engine
from clew.sessions.transcripts import Transcript, TranscriptCompaction, TranscriptStretch
from clew.store.trace import Fold, Trace
from clew.wire.formats import named
from clew.wire.formats.base import Format


async def tell(engine: Engine, scope: Scope, branch: str, until: int | None = None) -> Transcript:
    """The whole history of a branch, with its compactions and what stands in for what they took."""
    store = engine.store
    trace = await store.load(scope, branch, until)
    frame = (await engine.view(scope, branch, until)).frame
    by_id = {n.id: e for e in trace.edits for n in e.stand_ins}
    stored = await store.nodes(scope, [*(p.id for p in trace.said), *by_id])
    said = [stored[p.id] for p in trace.said]
    codec = named(frame.format)
    messages = codec.write([n.item for n in said])
    cuts = [cut for fold in trace.folds if (cut := _cut(trace, fold, said, stored, by_id, codec))]
    edges = zip([0, *(at for at, _ in cuts)], [*(at for at, _ in cuts), len(messages)], strict=True)
    began = [None, *(compaction for _, compaction in cuts)]
    stretches = (TranscriptStretch(tuple(messages[a:b]), why) for (a, b), why in zip(edges, began, strict=True))
    return Transcript(
        frame.format,
        tuple(stretches),
        name=trace.session or branch,
        agent="clew",
        model=frame.model,
        system=frame.system,
        tools=frame.tools,
    )


def _cut(
    trace: Trace,
    fold: Fold,
    said: Sequence[Node],
    stored: Mapping[str, Node],
    by_id: Mapping[str, Edit],
    codec: Format,
) -> tuple[int, TranscriptCompaction] | None:
    """The messages before a compaction, and what it was, if it summed anything up and still stands."""
    told = [stored[id] for id in fold.made if id in by_id and len(by_id[id].sources) > 1]
    covered = set(originals([n.id for n in told], dict(by_id)))
    places = [at for at, p in enumerate(trace.said[: fold.said]) if trace.alias.get(p.id, p.id) in covered]
    if not places:
        return None
    whole, gone = (len(codec.write([n.item for n in said[:end]])) for end in (fold.said, places[-1] + 1))
    return whole, TranscriptCompaction("\n\n".join(n.item.text for n in told), "auto", kept=whole - gone)
