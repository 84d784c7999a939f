"""The console blocks of a page, as a reader would type them: commands, and what they print. `sh` blocks show no output.

A comment before a block, which readers do not see, says what is otherwise: `<!-- console: after clew demo -->` has the
log of the demo there, `<!-- console: after ~/FILE` and lines of its own has that file, and `<!-- console: not run, it
needs a model -->` is the reason why nobody runs it. In what is printed, `…` stands for anything; ids, times and sizes
that are others each time count as equal, and a figure of four digits and more as long as it is true within a twentieth.

python tests/consoles.py PAGE ... writes down what is printed today, as much of it as the page showed.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from shell import invoke

BLOCK = re.compile(
    r"(?:^<!-- console: (?P<how>[^`]*?)\s-->\n+)?^```(?P<kind>console|sh)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
ID = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{10}\b")
OTHERWISE = (  # what is another each time, and what stands for it in a comparison
    (ID, "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "WHEN"),
    (re.compile(r"\b[\d,.]+ (?:bytes|KB|MB)\b"), "SIZE"),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)
FIGURE = re.compile(r"(?:\\? )*\b(\d{1,3}(?:,\d{3})+)\b")  # with what pads its column
ABOUT = 0.05  # what a figure of tokens may differ by from what a page shows, before the page must say another
OTHERS = ("CLEW_", "OPENAI_", "ANTHROPIC_", "XDG_", "CLAUDE_", "CODEX_")  # variables of whoever runs the tests


@dataclass
class Command:
    line: str
    shown: list[str] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line, comments=True)


@dataclass(frozen=True)
class Block:
    how: str
    commands: list[Command]
    place: tuple[int, int]  # of its text in the page
    prompt: str = "$ "

    @property
    def runs(self) -> bool:
        return not self.how.startswith("not run, ")


def blocks(page: str) -> Iterator[Block]:
    for found in BLOCK.finditer(page):
        commands: list[Command] = []
        prompt = "$ " if found["kind"] == "console" else ""
        for line in found["text"].splitlines():
            if line.startswith(prompt):
                commands.append(Command(line.removeprefix(prompt)))
            else:
                commands[-1].shown.append(line)
        yield Block(found["how"] or "", commands, found.span("text"), prompt)


def is_like(printed: str, shown: list[str]) -> bool:
    """Whether that was printed, but for what is another each time and for what is left out."""
    wanted = "\n".join(shown).rstrip()
    for pattern, word in OTHERWISE:
        printed, wanted = pattern.sub(word, printed), pattern.sub(word, wanted)
    whole = ".*?".join(FIGURE.sub(r" *(?<![\\d,])([\\d,]+)", re.escape(part)) for part in wanted.split("…"))
    found = re.fullmatch(whole, printed.strip("\n"), re.DOTALL)
    return found is not None and all(map(_is_near, FIGURE.findall(wanted), found.groups()))


def _is_near(shown: str, printed: str) -> bool:
    was, now = (int(figure.replace(",", "")) for figure in (shown, printed))
    return abs(now - was) <= ABOUT * was


class Console:
    """One reader's machine: a home that is also where commands are typed."""

    def __init__(self, home: Path, demo: str = "") -> None:
        mine = {name: None for name in os.environ if name.startswith(OTHERS)}
        plain = {"COLUMNS": "80", "FORCE_COLOR": None, "TTY_COMPATIBLE": None}
        self.env: dict[str, str | None] = {**mine, **plain, "HOME": str(home)}
        self.demo = demo  # what it printed, if it ran here

    def __call__(self, command: Command) -> str:
        """What a command prints; one that fails without showing so ends the test."""
        match command.words:
            case ["export", setting]:
                name, value = setting.split("=", 1)
                self.env[name] = value
                return ""
            case ["clew", "demo"] if self.demo:
                return self.demo
            case ["clew", *words]:
                given = [ID.sub(lambda _: self.one_id(), word) for word in words]
                done = invoke(given, input="y\n", env=self.env)
                assert done.exit_code == 0 or command.shown, f"{command.line}\n{done.output}"
                return done.output
        raise AssertionError(f"{command.line}: only clew and export are run; mark the block as not run")

    def prepare(self, how: str) -> None:
        """Make the file that a block comes after."""
        name, _, lines = how.removeprefix("after ").partition("\n")
        if lines:
            path = Path(str(self.env["HOME"])) / name.removeprefix("~/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{lines}\n", encoding="utf-8")

    def one_id(self) -> str:
        """An item that is there: ids are made with the secret of a log."""
        shown = invoke(["show", "demo", "--ids"], env=self.env).output
        return next(ID.finditer(shown))[0]


def demo(home: Path) -> str:
    """Have the log of the demo in a home; what the demo printed."""
    done = invoke(["demo"], env=Console(home).env)
    assert done.exit_code == 0, done.output
    return done.output


def renewed(shown: list[str], printed: str) -> list[str]:
    """As many lines as were shown, before and after what was left out."""
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    if "…" not in shown:
        return lines
    at, behind = shown.index("…"), len(shown) - shown.index("…") - 1
    return [*lines[:at], "…", *(lines[-behind:] if behind else ())]


def write(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        found = list(blocks(text))
        console = Console(Path(folder), demo(Path(folder)) if any("clew demo" in b.how for b in found) else "")
        new = {}
        for block in (b for b in found if b.runs):
            console.prepare(block.how)
            lines: list[str] = []
            for command in block.commands:
                printed = console(command)
                fits = not command.shown or is_like(printed, command.shown)
                lines += [
                    f"{block.prompt}{command.line}",
                    *(command.shown if fits else renewed(command.shown, printed)),
                ]
            new[block.place] = "".join(f"{line}\n" for line in lines)
    for (begin, end), block_text in sorted(new.items(), reverse=True):
        text = text[:begin] + block_text + text[end:]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in [Path(name).resolve() for name in sys.argv[1:]]:
        write(name)
