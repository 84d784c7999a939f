"""A cache mark of our own: some providers keep only what ends at a mark, and after a fold no client's mark is there."""

from collections.abc import Sequence
from dataclasses import replace as with_

from clew.core.items import Item, Node
from clew.core.view import View
from clew.steps.worklog.blocks import OPENING
from clew.wire.formats.anthropic.rules import MARKS
from clew.wire.rules.turns import marks

MARKED = "anthropic"  # the format of those providers
BEARING = "text", "call", "result", "media", "summary"  # kinds that may carry a mark


def anchored(view: View) -> list[Item]:
    """What a view sends, with a mark where the part ends that the next fold leaves as it is.

    Only where the client uses marks itself. If it has as many as there may be, its first one in the messages moves.
    """
    items = [n.item for n in view.nodes]
    own = [at for at, item in enumerate(items) if item.mark is not None]
    if not own or view.frame.format != MARKED:
        return items
    at = anchor(view.nodes)
    free = MARKS - len(own) - len(marks(dict(view.frame.body)))
    if at is None or items[at].mark is not None or free < 0 or (not free and len(own) < 2):
        return items
    items[at] = with_(items[at], mark=items[own[0]].mark)
    if not free:
        items[own[0]] = with_(items[own[0]], mark=None)
    return items


def anchor(nodes: Sequence[Node]) -> int | None:
    """Where the part ends that the next fold leaves as it is: before the newest block of the log, which it rewrites."""
    log = [at for at, n in enumerate(nodes) if n.item.kind == "summary" and n.item.text.startswith(OPENING)]
    before = range(log[-1] - 1, -1, -1) if log else ()
    return next((at for at in before if nodes[at].item.kind in BEARING), None)
