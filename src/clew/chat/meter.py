"""How full the window is, and of what: a bar, and the same in words for whoever does not see bars."""

from rich.text import Text
from textual.widget import Widget

from clew.chat.backend import WindowFilling
from clew.screens.lines import dollars
from clew.screens.window import bar

SHORT_LABELS = {
    "system and tools": "system",
    "other stand-ins": "stand-ins",
    "user text": "user",
    "assistant text": "assistant",
}


class WindowMeter(Widget):
    """Two lines; in a low pane the words alone."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._filling: WindowFilling | None = None
        self._who = ""

    def tell(self, filling: WindowFilling | None, who: str) -> None:
        """Show this; `who` is the model and who decides."""
        self._filling, self._who = filling, who
        self.refresh()

    @property
    def words(self) -> str:
        """How full it is, and what all came to."""
        if self._filling is None:
            return f"window empty · {self._who}"
        window, cost, folds = self._filling
        full = window.full
        compacted = f"compacted {folds}×" if folds else ""
        used = f"{full.percent}% full", f"{full.used:,} of {full.room:,}", f"window {full.window:,}"
        kept = f"system and tools {max(0, window.sent - full.used):,}", f"reserve {window.reserve:,}"
        return " · ".join(filter(None, (*used, dollars(cost), self._who, compacted, *kept)))

    @property
    def kinds(self) -> str:
        """What it is made of, most of it first."""
        made = self._filling.window.parts if self._filling else []
        own = sum(part.tokens for part in made) or 1
        most = sorted(made, key=lambda part: -part.tokens)
        return ", ".join(f"{SHORT_LABELS.get(part.kind, part.kind)} {part.tokens / own:.0%}" for part in most)

    def render(self) -> Text:
        words = Text(self.words)
        words.truncate(self.size.width, overflow="ellipsis")
        if self.size.height < 2 or self._filling is None:
            return words
        width = max(self.size.width // 3, self.size.width - len(self.kinds) - 1)
        kinds = Text(f" {self.kinds}")
        kinds.truncate(self.size.width - width, overflow="ellipsis")
        return Text("\n").join([bar(self._filling.window, width, colours=True) + kinds, words])
