"""Files, known by the longest way they were written.

`view.py`, `clew/view.py` and `/home/me/clew/view.py` are one file as long as no other one ends so. A text names a file
if it has it in full, or by an end of its path that no other file of that part of the conversation ends with.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

NameEnds = tuple[str, ...]  # names of a path, the last one first


class Files:
    """The files that a part of a conversation names."""

    def __init__(self, written: Iterable[str]) -> None:
        paths = {_names(path): path for path in written}
        paths.pop((), None)
        ends = {end for names in paths for end in _ends(names) if end != names}
        self.all = tuple(path for names, path in paths.items() if names not in ends)  # each once
        self._by_end: dict[NameEnds, list[str]] = defaultdict(list)
        for path in self.all:
            for end in _ends(_names(path)):
                self._by_end[end].append(path)

    def named_in(self, written: Iterable[str]) -> set[str]:
        """The files that these paths name, each in no doubt."""
        found: set[str] = set()
        for path in written:
            names = _names(path)
            # A longer way to write it than was known names it too.
            longest = next((end for end in reversed([*_ends(names)]) if end in self._by_end), None)
            if longest is None:
                continue
            files = self._by_end[longest]
            whole = [file for file in files if _names(file) == longest]
            if longest == names and len(files) == 1:
                found.add(files[0])
            elif whole:
                found.add(whole[0])
        return found


def _names(path: str) -> NameEnds:
    return tuple(name for name in reversed(path.split("/")) if name not in ("", ".", "~"))


def _ends(names: NameEnds) -> Iterator[NameEnds]:
    yield from (names[:size] for size in range(1, len(names) + 1))
