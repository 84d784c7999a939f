"""A step whose summaries have a model's notes in them: for callers who can wait."""

from collections.abc import Callable
from dataclasses import dataclass

from clew.core.step import Step
from clew.core.view import View
from clew.facts.claims import Draft
from clew.steps.notes.drafts import drafted, unread
from clew.steps.notes.writer import Writer
from clew.tokens.budget import Budget


@dataclass(frozen=True)
class WithNotes:
    """A step, and a model that reads what it will fold; the model is asked only if there will be a fold."""

    writer: Writer
    step: Step
    focus: str = ""
    told: Callable[[Draft], None] | None = None  # hears what came of asking

    async def __call__(self, view: View, budget: Budget) -> View:
        after = await self.step(view, budget)
        folds = any("coverage" in edit.evidence for edit in after.edits[len(view.edits) :])
        if not folds or not (nodes := unread(view, budget)):
            return after
        draft = await drafted(self.writer, view, nodes, self.focus)
        if self.told:
            self.told(draft)
        return await self.step(view, budget) if draft.read else after
