"""How full the window is, and of what: a bar, and the same in words for whoever does not see bars."""

from rich.text import Text
from textual.widget import Widget

from clew.chat.desk import Filling
from clew.screens.lines import dollars
from clew.screens.window import cells

SHORT = {
    "system and tools": "system",
    "other stand-ins": "stand-ins",
    "user text": "user",
    "assistant text": "assistant",
}


class Meter(Widget):
    """Two lines; in a low pane the words alone."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._filling: Filling | None = None
        self._who = ""

    def tell(self, filling: Filling | None, who: str) -> None:
        """Show this; `who` is the model and who decides."""
        self._filling, self._who = filling, who
        self.refresh()

    @property
    def words(self) -> str:
        """All that the bar says."""
        if self._filling is None:
            return f"window empty · {self._who}"
        made, sent, limit, reserve, cost, folds = self._filling
        head = f"{sent / limit:.0%} full · {sent:,} of {limit:,}"
        own = sum(part.tokens for part in made) or 1
        kinds = (f"{SHORT.get(p.kind, p.kind)} {p.tokens / own:.0%}" for p in sorted(made, key=lambda p: -p.tokens))
        compacted = f"compacted {folds}×" if folds else ""
        rest = (dollars(cost), self._who, compacted, ", ".join(kinds), f"reserve {reserve:,}")
        return " · ".join(filter(None, (head, *rest)))

    def render(self) -> Text:
        width, low = self.size.width, self.size.height < 2
        words = Text(self.words, no_wrap=True, overflow="ellipsis")
        words.truncate(width, overflow="ellipsis")
        if low or self._filling is None:
            return words
        made, sent, limit, reserve, _, _ = self._filling
        return Text("\n").join([cells(made, sent, limit, reserve, width, colours=True), words])
