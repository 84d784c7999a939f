"""The log of an engine as the place where chapters are kept."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from dataclasses import replace as with_

from clew.core.items import Item, Scope
from clew.engine.turns import Turns
from clew.errors import NotFound
from clew.facts.chapters import Chapter


@dataclass(frozen=True, slots=True)
class StoredChapters:
    """Chapters as events of their branches."""

    turns: Callable[[], Turns]

    def alone(self, scope: Scope, branch: str) -> AbstractAsyncContextManager[None]:
        """A turn in which nobody else asks for chapters of a branch, in no process."""
        return self.turns().store.alone(scope, f"chapters of {branch}")

    async def chapters(self, scope: Scope, branch: str) -> Sequence[Chapter]:
        """Those that the log has, whoever had them written."""
        try:
            return (await self.turns().store.load(scope, branch)).chapters
        except NotFound:
            return ()

    async def keep(self, scope: Scope, branch: str, chapters: Sequence[Chapter]) -> Sequence[Chapter]:
        """Write chapters, with secrets masked; gives back those of a branch that is not there yet."""
        guard, kept = self.turns().guard(scope), list[Chapter]()
        for chapter in chapters:
            words = [*chapter.texts, *chapter.findings, chapter.asked, chapter.answer]
            safe = [item.text for item in guard.admit([Item("text", "assistant", text) for text in words])]
            texts, findings = len(chapter.texts), len(chapter.findings)
            told = tuple(safe[:texts]), tuple(safe[texts : texts + findings])
            kept.append(with_(chapter, texts=told[0], findings=told[1], asked=safe[-2], answer=safe[-1]))
        try:
            await self.turns().record(scope, branch, [*kept])
        except NotFound:
            return kept
        return ()
