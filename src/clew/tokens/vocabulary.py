"""What a tokenizer is to us: a name, a count, and whether that count is the model's own."""

from collections.abc import Callable
from typing import Protocol


class Vocabulary(Protocol):
    """Counts the tokens of a text; implement this to plug in a tokenizer of your own."""

    @property
    def name(self) -> str:
        """What the counts are cached and reported under."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the model itself would count the same."""
        ...

    def count(self, text: str) -> int:
        """How many tokens the text is."""
        ...


class Plain:
    """A vocabulary made of a name and a function."""

    __slots__ = ("_count", "exact", "name")

    def __init__(self, name: str, count: Callable[[str], int], exact: bool = False) -> None:
        self.name = name
        self.exact = exact
        self._count = count

    def __repr__(self) -> str:
        return f"Plain({self.name!r}, exact={self.exact})"

    def count(self, text: str) -> int:
        """How many tokens the text is."""
        try:
            return self._count(text)
        except UnicodeEncodeError:
            return self._count(well_formed(text))


def well_formed(text: str) -> str:
    """The text with lone surrogates replaced, as a server that reads UTF-8 would see it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
