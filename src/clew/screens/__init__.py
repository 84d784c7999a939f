"""The two ends of the command line: the files it reads and writes, and what it shows; a module a group of commands."""

from clew.screens.files import parse, read, save
from clew.screens.lines import line, name, words

__all__ = ["line", "name", "parse", "read", "save", "words"]
