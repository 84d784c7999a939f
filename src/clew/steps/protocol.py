"""THE protocol: a strategy is a function from view to view. So is every combination of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace as with_
from functools import partial
from typing import Protocol, TypeVar, runtime_checkable

from clew.core.threads import are_large, in_thread_if
from clew.core.view import View
from clew.tokens.target import Target

T = TypeVar("T")


class Step(Protocol):
    """A strategy, a combinator, a whole pipeline."""

    async def __call__(self, view: View, target: Target, /) -> View: ...


class PureStep(ABC):
    """A step that asks nobody: on a large view it is applied in a thread, for which the event loop need not wait."""

    @abstractmethod
    def apply(self, view: View, target: Target) -> View: ...

    async def __call__(self, view: View, target: Target) -> View:
        return await off_loop(view, lambda: self.apply(view, target))


async def off_loop(view: View, act: Callable[[], T]) -> T:
    """Do something with a view; in a thread, if it is large."""
    return await in_thread_if(are_large(node.item for node in view.nodes), act)


@runtime_checkable
class Combination(Protocol):
    """A step made of others: `map` gives the same combination of changed ones."""

    def map(self, change: Callable[[Step], Step]) -> Step: ...


class Pipeline:
    """Cheapest first; stop as soon as it fits."""

    def __init__(self, *steps: Step) -> None:
        self.steps = steps

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(map(repr, self.steps))})"

    def map(self, change: Callable[[Step], Step]) -> "Pipeline":
        return Pipeline(*(change(step) for step in self.steps))

    async def __call__(self, view: View, target: Target) -> View:
        for step in self.steps:
            if not await off_loop(view, partial(target.excess, view)):
                break
            view = await step(view, target)
        return view


class When:
    """A step that runs only where `holds` does."""

    def __init__(self, holds: Callable[[View, Target], bool], step: Step) -> None:
        self.holds = holds
        self.step = step

    def __repr__(self) -> str:
        return f"When({getattr(self.holds, '__name__', self.holds)}, {self.step!r})"

    def map(self, change: Callable[[Step], Step]) -> "When":
        return When(self.holds, change(self.step))

    async def __call__(self, view: View, target: Target) -> View:
        return await self.step(view, target) if self.holds(view, target) else view


class ToLimit:
    """A step that goes down to the limit alone: what a goal has no room for is missed less than what would go."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def __repr__(self) -> str:
        return f"ToLimit({self.step!r})"

    def map(self, change: Callable[[Step], Step]) -> "ToLimit":
        return ToLimit(change(self.step))

    async def __call__(self, view: View, target: Target) -> View:
        return await self.step(view, with_(target, aimed=target.limit))


class Fallback:
    """The first step; the second if the first raises one of `on`, with the view as it was."""

    def __init__(self, first: Step, second: Step, on: tuple[type[Exception], ...] = (Exception,)) -> None:
        self.first = first
        self.second = second
        self.on = on

    def __repr__(self) -> str:
        return f"Fallback({self.first!r}, {self.second!r})"

    def map(self, change: Callable[[Step], Step]) -> "Fallback":
        return Fallback(change(self.first), change(self.second), self.on)

    async def __call__(self, view: View, target: Target) -> View:
        try:
            return await self.first(view, target)
        except self.on:
            return await self.second(view, target)
