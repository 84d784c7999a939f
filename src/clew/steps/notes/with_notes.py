"""A step whose summaries have a model's notes in them: for callers who can wait."""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as with_

from clew.core.view import View
from clew.facts.claims import Draft
from clew.steps.notes.drafts import Notebook, unread
from clew.steps.notes.writer import Writer
from clew.steps.protocol import Step
from clew.steps.summarize import briefed
from clew.tokens.target import Target


@dataclass(frozen=True)
class WithNotes:
    """A step, and a model that reads what it will fold; the model is asked only if there will be a fold."""

    writer: Writer
    step: Step
    focus: str = ""
    told: Callable[[Draft], None] | None = None  # hears what came of asking

    async def __call__(self, view: View, target: Target) -> View:
        after = await self.step(view, target)
        folds = any("coverage" in edit.evidence for edit in after.edits[len(view.edits) :])
        if not folds or not (nodes := unread(view, target)):
            return after
        draft = await Notebook().fill(self.writer, view, nodes, self.focus)
        if self.told:
            self.told(draft)
        return await briefed(self.step, draft=draft)(view, target) if draft.read else after

    def map(self, change: Callable[[Step], Step]) -> Step:
        """The same around a changed step."""
        return with_(self, step=change(self.step))
