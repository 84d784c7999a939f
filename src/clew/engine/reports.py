"""What was written to the log, as listeners hear it: sizes and costs, no content."""

from collections.abc import Iterator, Sequence

from clew import events
from clew.catalog import Prices
from clew.catalog.usage import Spent, cost
from clew.core.items import Edit, Scope
from clew.core.view import View
from clew.store.records import Began, Call, ClientEdit, Event, Said
from clew.store.trace import Trace
from clew.tokens.meter import Meter


def turn_events(
    scope: Scope, trace: Trace, first: int, written: Sequence[Event], shown: View, meter: Meter, prices: Prices | None
) -> Iterator[events.Event]:
    """The events of one turn, the first of which has the number `first`."""
    edited = any(isinstance(event, Edit) for event in written)
    sizes = {n.id: meter.node(n).tokens for n in shown.nodes} if edited else {}
    for seq, event in enumerate(written, first):
        at = scope, trace.branch, seq
        match event:
            case Said(nodes) | ClientEdit(nodes=nodes):
                yield events.Appended(*at, len(nodes), meter.nodes(nodes).tokens)
            case Began(session, cause, method):
                yield events.Began(*at, session, cause, method)
            case Edit(by, old, new, evidence, spent):
                sizes |= {n.id: meter.node(n).tokens for n in new}
                before, after = sum(sizes.get(id, 0) for id in old), sum(sizes[n.id] for n in new)
                yield events.Edited(*at, by, len(old), before, after, spent, evidence.get("cost"))
            case Call(model=model, format=format, predicted=tokens, limit=limit, exact=exact):
                price = cost(prices, Spent(tokens)) if prices else None
                compacted = bool(trace.edits)
                yield events.Called(*at, model, format, tokens, limit, exact, price, trace.session, compacted)
