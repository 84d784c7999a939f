"""The Python blocks of a page, pasted into Python's prompt: there a blank line ends what was begun."""

import re
import sys
from code import InteractiveConsole
from types import CodeType

EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONTINUES = "# Continues the block above.\n"
FILE = "# A file: "


def examples(page: str) -> list[str]:
    """What is pasted into one prompt after another: a block, and those that say that they continue it."""
    found: list[str] = []
    for block in EXAMPLE.findall(page):
        if block.startswith(CONTINUES):
            found[-1] += f"\n{block}"
        else:
            found.append(block)
    return found


class Prompt(InteractiveConsole):
    """Python's prompt, at which the first error is the end."""

    def __init__(self, *, runs: bool = True) -> None:
        super().__init__({"__name__": "docs"})
        self.runs = runs

    def paste(self, block: str) -> None:
        if block.startswith(FILE):
            self.runcode(compile(block, "<docs>", "exec"))
            return
        for line in [*block.splitlines(), ""]:
            more = self.push(line)
        assert not more, f"not the end of what was begun: {block}"

    def runcode(self, code: CodeType) -> None:
        if self.runs:
            exec(code, self.locals)

    def showsyntaxerror(self, filename: str | None = None, **given: object) -> None:
        error = sys.exception()
        assert error
        raise error
