"""THE protocol: a strategy is a function from view to view. So is every combination of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from clew.catalog.usage import Spent
from clew.core.view import View
from clew.tokens.budget import Budget


class Step(Protocol):
    """A strategy, a combinator, a whole pipeline."""

    async def __call__(self, view: View, budget: Budget) -> View: ...


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked: a text by itself, or one more message after a request that was sent before."""

    text: str
    max_tokens: int
    system: str = ""
    after: View | None = None  # the provider reads all of it from its cache, if it is the one that was sent it


class Reply(NamedTuple):
    """What a model wrote, and what that took."""

    text: str
    spent: Spent = Spent(0)
    calls: tuple[str, ...] = ()  # tools it wanted to call instead of writing
    reasoning: bool = False  # it thought aloud apart from the text
    cut: bool = False  # it had more to say than `max_tokens`


class Model(Protocol):
    """Whatever can write a summary. What goes wrong is a `ModelError`."""

    @property
    def name(self) -> str:
        """By which the catalog knows it."""

    @property
    def window(self) -> int:
        """Tokens of prompt and answer together."""

    async def __call__(self, prompt: Prompt) -> Reply: ...


class Pipeline:
    """Cheapest first; stop as soon as it fits."""

    def __init__(self, *steps: Step) -> None:
        self.steps = steps

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(map(repr, self.steps))})"

    async def __call__(self, view: View, budget: Budget) -> View:
        for step in self.steps:
            if not budget.excess(view):
                break
            view = await step(view, budget)
        return view


class When:
    """A step that runs only where `holds` does."""

    def __init__(self, holds: Callable[[View, Budget], bool], step: Step) -> None:
        self.holds = holds
        self.step = step

    def __repr__(self) -> str:
        return f"When({getattr(self.holds, '__name__', self.holds)}, {self.step!r})"

    async def __call__(self, view: View, budget: Budget) -> View:
        return await self.step(view, budget) if self.holds(view, budget) else view


class Fallback:
    """The first step; the second if the first raises one of `on`, with the view as it was."""

    def __init__(self, first: Step, second: Step, on: tuple[type[Exception], ...] = (Exception,)) -> None:
        self.first = first
        self.second = second
        self.on = on

    def __repr__(self) -> str:
        return f"Fallback({self.first!r}, {self.second!r})"

    async def __call__(self, view: View, budget: Budget) -> View:
        try:
            return await self.first(view, budget)
        except self.on:
            return await self.second(view, budget)
