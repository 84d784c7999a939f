"""What fills the window of a conversation, and how much of it may be filled."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from clew.core.view import View
from clew.sessions.composition import CompositionPart, Shown, adding_up, parts, shown
from clew.tokens.target import Filled, Target


@dataclass(frozen=True)
class Window:
    """What a model sees; tokens as its provider counts them."""

    view: View
    call: int | None  # that it was sent in; None: it was not sent yet
    sent: int
    target: Target

    @property
    def limit(self) -> int:
        """Tokens that may be sent."""
        return self.target.limit.tokens

    @property
    def reserve(self) -> int:
        """Tokens kept free for the answer."""
        return self.target.kept_free

    @property
    def share(self) -> float:
        """Of what may be sent."""
        return self.sent / self.limit if self.limit else 0.0

    @cached_property
    def full(self) -> Filled:
        """How full it is, on the scale of thresholds, and of what an agent is told."""
        own = self.target.size(self.view).tokens
        return self.target.filled(own, self.sent / max(1, own))

    @cached_property
    def _sizes(self) -> list[int]:
        """Tokens of system prompt and tools, and of each node: they add up to what was sent."""
        frame, meter = self.view.frame, self.target.meter
        framed = meter.frame(frame).tokens if frame.system or frame.tools else 0
        return adding_up([framed, *(meter.node(node).tokens for node in self.view.nodes)], self.sent)

    @property
    def frame(self) -> int:
        """Tokens of system prompt and tools."""
        return self._sizes[0]

    @cached_property
    def nodes(self) -> Sequence[Shown]:
        """All that is in it."""
        counted = shown(self.view.nodes, self.view.edits, self.target.meter)
        return [one._replace(tokens=size) for one, size in zip(counted, self._sizes[1:], strict=True)]

    @cached_property
    def parts(self) -> Sequence[CompositionPart]:
        """The same by kind."""
        return parts(self.nodes, self.frame)
