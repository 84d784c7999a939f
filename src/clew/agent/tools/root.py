"""The folder that tools work in, and paths that must not lead out of it."""

import os
from pathlib import Path

from clew.errors import ToolError


class Root:
    """A folder; with `anywhere`, only the place that relative paths start from."""

    def __init__(self, folder: Path, anywhere: bool = False) -> None:
        self.folder = Path(os.path.realpath(folder))
        self._anywhere = anywhere

    def find(self, path: str) -> Path:
        """Where a path leads when all symbolic links are followed; refused if that is outside."""
        try:
            found = Path(os.path.realpath(self.folder / path))
        except ValueError:  # a NUL, or half of a surrogate pair
            raise ToolError(f"no file can have the name {path!r}") from None
        if not self._anywhere and not found.is_relative_to(self.folder):
            raise ToolError(f"{path!r} is outside {self.folder}: only files in there can be used")
        return found

    def name(self, path: Path) -> str:
        """A path as the model would write it."""
        inside = path.is_relative_to(self.folder)
        return displayed(path.relative_to(self.folder).as_posix() if inside else str(path))


def displayed(text: str) -> str:
    """A text with a replacement character where bytes that are no UTF-8 were kept as lone surrogates."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
