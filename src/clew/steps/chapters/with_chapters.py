"""A step whose summaries a model writes: for callers who can wait."""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as with_

from clew.core.view import View
from clew.facts.chapters import Written
from clew.steps.chapters.asking import wanted, written_of
from clew.steps.chapters.author import Author
from clew.steps.protocol import Step, off_loop
from clew.steps.summarize import briefed
from clew.tokens.target import Target


@dataclass(frozen=True)
class WithChapters:
    """A step, and an author who writes of what it will fold; nobody is asked unless there will be a fold."""

    author: Author
    step: Step
    focus: str = ""
    told: Callable[[Written], None] | None = None  # hears what came of asking

    async def __call__(self, view: View, target: Target) -> View:
        reached: list[tuple[View, Target]] = []
        after = await briefed(self.step, self.focus, reached=reached.append)(view, target)
        folds = any("coverage" in edit.evidence for edit in after.edits[len(view.edits) :])
        if not folds:
            return after
        want = await off_loop(view, lambda: wanted(*reached[0], (), self.author.size, after))
        if not want:
            return after
        written = await written_of(self.author, want, self.focus)
        if self.told:
            self.told(written)
        return await briefed(self.step, self.focus, written.chapters)(view, target) if written.chapters else after

    def map(self, change: Callable[[Step], Step]) -> Step:
        """The same around a changed step."""
        return with_(self, step=change(self.step))
