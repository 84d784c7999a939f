"""A cache mark of our own: some providers keep only what ends at a mark, and after a fold no client's mark is there."""

from dataclasses import replace as with_

from clew.core.items import Item
from clew.core.view import View
from clew.steps.worklog.blocks import OPENING
from clew.wire.rules.anthropic import MARKS
from clew.wire.rules.turns import marks

MARKED = "anthropic"  # the format of those providers


def anchored(view: View) -> list[Item]:
    """What a view sends, with a mark on the last block but one of its log: the next fold leaves all up to there.

    Only where the client uses marks itself. If it has as many as there may be, its first one in the messages moves.
    """
    items = [n.item for n in view.nodes]
    own = [at for at, item in enumerate(items) if item.mark is not None]
    if not own or view.frame.format != MARKED:
        return items
    log = [at for at, item in enumerate(items) if item.kind == "summary" and item.text.startswith(OPENING)]
    free = MARKS - len(own) - len(marks(dict(view.frame.body)))
    if len(log) < 2 or free < 0 or (not free and len(own) < 2):
        return items
    items[log[-2]] = with_(items[log[-2]], mark=items[own[0]].mark)
    if not free:
        items[own[0]] = with_(items[own[0]], mark=None)
    return items
