"""The two ends of the command line: the files it writes, and what it shows; a module a group of commands."""

from clew.screens.files import save
from clew.screens.lines import line, name, words

__all__ = ["line", "name", "save", "words"]
