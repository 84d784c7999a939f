"""The window of a conversation as the model sees it now: by kind, and piece by piece, with what stands behind each."""

from collections.abc import Sequence
from dataclasses import dataclass

from clew.core.items import Scope
from clew.core.threads import in_thread
from clew.engine.engine import Engine
from clew.sessions.composition import CompositionPart, Shown, adding_up, parts, shown
from clew.steps.lines import clip
from clew.store.records import Call

PIECES = 60  # that are loaded at once, the newest first
CLIPPED = 700  # characters of a piece that are shown before somebody asks for all of it


@dataclass(frozen=True, slots=True)
class WindowPiece:
    """Something in view: what was said, or what stands in for it."""

    place: int
    id: str
    role: str
    kind: str  # as the composition has it
    name: str  # of a tool
    tokens: int
    text: str
    left: int  # characters that are not shown
    by: str  # the step that made it; nothing: it was said
    pinned: bool


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """What the model sees, and how much of the room that takes."""

    parts: Sequence[CompositionPart]
    pieces: Sequence[WindowPiece]
    start: int  # of the pieces, among all
    of: int
    sent: int  # tokens, as the provider counts
    limit: int
    window: int | None  # None: the log does not say, and it is not what this process would take
    system: str
    tools: int

    @property
    def share(self) -> float:
        return self.sent / self.limit if self.limit else 0.0


async def window(
    engine: Engine, scope: Scope, branch: str, calls: Sequence[Call], before: int | None = None
) -> ShownWindow:
    """The window of a branch after these calls, with the newest of its pieces, or those before a place."""
    view = await engine.view(scope, branch)
    target = await engine.limits.target(scope, view.frame)
    sent = await engine.expected(view)
    limit = calls[-1].limit if calls else target.limit.tokens  # as its agent was allowed, with whatever settings

    def looked() -> ShownWindow:
        counted = shown(view.nodes, view.edits, target.meter)
        framed = target.meter.frame(view.frame).tokens
        framed, *sizes = adding_up([framed, *(one.tokens for one in counted)], sent)  # as the provider counts
        every = [one._replace(tokens=size) for one, size in zip(counted, sizes, strict=True)]
        stop = len(every) if before is None else min(before, len(every))
        start = max(0, stop - PIECES)
        pieces = [_piece(at, every[at], every[at].node.id in view.pinned) for at in range(start, stop)]
        return ShownWindow(
            parts(every, framed),
            pieces,
            start,
            of=len(every),
            sent=sent,
            limit=limit,
            window=target.window if limit == target.limit.tokens else None,
            system=clip(view.frame.system, CLIPPED),
            tools=len(view.frame.tools),
        )

    return await in_thread(looked)


def _piece(place: int, found: Shown, pinned: bool) -> WindowPiece:
    item, by = found.node.item, found.by.partition("(")[0]
    text = item.text[:CLIPPED]
    left = len(item.text) - len(text)
    # A stand-in may have the id of what it stands for at its end; by its own it is found as well.
    return WindowPiece(place, found.node.id, item.role, found.kind, item.name, found.tokens, text, left, by, pinned)
