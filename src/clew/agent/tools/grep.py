"""A program that prints the lines that match, as ripgrep does, for where there is none."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from clew.agent.tools.bounds import clipped
from clew.agent.tools.files import PROBE, lines_of
from clew.agent.tools.searching import FOUND_LINE
from clew.agent.tools.walking import Glob, walk
from clew.core import rawjson

LINE_BYTES = 1 << 20  # bytes of a line that are looked at


def main(asked: str) -> int:
    """Search the working directory, or a file in it; 0 if something was found, else 1."""
    pattern, file, glob, plain, root = rawjson.loads(asked)
    expression = re.compile(re.escape(pattern) if plain else pattern)
    code = 1
    for name in [file] if file else _names(Glob(glob or "*"), Path(root)):
        for number, line in _matching(Path(name), expression):
            sys.stdout.write(f"./{name}:{number}:{clipped(line, FOUND_LINE)}\n")
            code = 0
    return code


def _names(glob: Glob, root: Path) -> Iterator[str]:
    top = Path.cwd()
    for entry in walk(top, root):
        name = Path(entry).relative_to(top).as_posix()
        if entry.is_file(follow_symlinks=False) and glob.fits(name):
            yield name


def _matching(file: Path, expression: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    try:
        with file.open("rb") as data:
            if b"\0" in data.peek(PROBE)[:PROBE]:
                return
            for number, (line, _) in enumerate(lines_of(data, LINE_BYTES), 1):
                text = line.rstrip(b"\r\n").decode("utf-8", "replace")
                if expression.search(text):
                    yield number, text
    except OSError:
        return  # one that may not be read, or is gone since


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
