"""Every command that a text of clew's names can be typed as it stands there: what errors, pages, help and docs say.

In texts a command stands in backquotes (on the page in `<code>`), so that a reader sees where it ends, the command line
can add the log that somebody named (`hinted` in cli/app.py), and it can be found here.
"""

import ast
import asyncio
import html
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer import Context

from clew.cli.groups import MODULES, MOVED
from shell import COMMANDS, Shell, invoke
from test_commands import WINDOW, fill

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "clew"
COMMAND = re.compile(rf"\bclew (?:{'|'.join(MODULES)})\b")
MARKED = re.compile(r"`(clew [a-z][^`]*)`|<code>(clew [a-z][^<]*)</code>|^  (clew [a-z].*?)   ", re.MULTILINE)
MEANT = {  # what a reader puts in the place of a word, here
    **dict.fromkeys(("client", "CLIENT", "program.name"), "claude"),
    **dict.fromkeys(("NAME", "first", "name", "replay.session", "shlex.quote(printable(name))"), "run"),
    "PATH": "session.jsonl",
    "example[1]": "zebras",
    "one.number": "1",
    "key": "high",
    "value": "0.8",
    "N": "4000",
    "WORD": "nightly",
    "URL": "http://127.0.0.1:9/v1",
    "VARIABLE": "SOME_KEY",
    "auto|llm": "auto",
    "TOKENS": "4000",
    "MODEL": "gpt-5",
}
# What waits for a key or a request, asks a model or a server, or starts processes of its own: read, not run.
WAITING = (
    "batch",
    "serve",
    "open",
    "chat",
    "run",
    "hook",
    "mcp",
    "plugin",
    "install",
    "lab",
    "model list",
    "resume --in crush",
)
ENDS = ("config", "doctor", "sessions")  # without a word more
FILES = {"backup": "saved.db", "import": "session.jsonl", "batch": "session.jsonl", "export": "again.jsonl"}


@cache
def texts() -> dict[str, list[str]]:
    """What each module may print, as far as it names clew."""
    written = ((path.name, path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py")))
    return {name: [*_texts(source)] for name, source in written if COMMAND.search(source)}


def _texts(source: str) -> Iterator[str]:
    """With {expression} where one is put together, and docstrings, which `--help` shows."""
    tree = ast.parse(source)
    tree.body[:1] = []  # what a module is for, nobody prints
    every = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Constant)]
    parts = {id(part) for text in every if isinstance(text, ast.JoinedStr) for part in text.values}
    for node in every:
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
                for part in node.values
                if isinstance(part, ast.Constant | ast.FormattedValue)
            )
        elif isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def of_source() -> set[str]:
    """The commands that code and templates name."""
    printed = ["\n\n".join(told) for told in texts().values()]
    printed += [html.unescape(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.html")]
    found = {next(filter(None, marked.groups())) for text in printed for marked in MARKED.finditer(text)}
    return found | {command for command in MOVED.values() if command.startswith("clew ")}


def of_pages() -> set[str]:
    """The commands that README and docs name between other words; whole blocks are run by test_docs.py."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    return {
        re.sub(r"\s+", " ", marked[1])
        for page in pages
        for marked in re.finditer(r"`(clew [a-z][^`]*)`", page.read_text(encoding="utf-8"))
        if COMMAND.match(marked[1]) or not marked[1].endswith("…")  # a message, as far as it is always the same
    }


def words(command: str) -> list[str]:
    """A command as a reader of it types it."""
    said = re.sub(r"\{(.*?)\}(?!\])", lambda part: MEANT[part[1]], command)
    said = re.sub(r"\[(-[^]]*)\]|\[[^]]*\]|…|\.\.\.", r"\1", said)
    said = said.replace("agent.model NAME", "agent.model gpt-5")
    for word in (word for word in MEANT if word.isupper() or "|" in word):
        said = re.sub(rf"(?<![\w.|-]){re.escape(word)}(?![\w|-])", MEANT[word], said)
    typed = shlex.split(said.replace(".NAME.", ".run."))[1:]
    return [FILES.get(typed[0], word) if word == "FILE" else word for word in typed]


def parsed(command: str) -> None:
    """Raises where a command, an option or a value is none."""
    group: Any = COMMANDS
    rest = words(command)
    while rest and hasattr(group, "commands") and not rest[0].startswith("-"):
        inner = group.get_command(group.context_class(group), rest[0])
        assert inner is not None, command
        group, rest = inner, rest[1:]
    if rest:
        group.make_context("clew", rest)


def test_every_command_in_a_text_is_marked_as_one() -> None:
    unmarked = [
        (name, text)
        for name, told in texts().items()
        for text in told
        if COMMAND.search(MARKED.sub("", text)) and not COMMAND.match(text)
        if not text.startswith("Example: ") and "\n" not in text
    ]
    assert unmarked == []


@pytest.mark.parametrize("command", sorted(of_source() | of_pages()))
def test_every_command_that_a_text_names_is_one(command: str) -> None:
    """With options that there are, and values that they take."""
    group: Any = COMMANDS
    rest = words(command)
    while rest and (inner := getattr(group, "commands", None)) is not None and not rest[0].startswith("-"):
        group = group.get_command(Context(group), rest.pop(0))
        assert group is not None, inner
    if rest:
        group.make_context("clew", rest)


def test_every_command_that_clew_itself_names_can_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    clew = Shell(tmp_path)
    clew.configure(WINDOW)
    asyncio.run(fill(clew.store))
    assert clew("export", "run", "--format", "claude-code", "-o", "session.jsonl").exit_code == 0
    assert clew("backup", "saved.db").exit_code == 0
    for command in sorted(of_source()):
        typed = words(command)
        if (typed[1:] or typed[0] in ENDS) and not " ".join(typed).startswith(WAITING):
            done = clew(*typed, input="y\n")
            assert done.exit_code == 0, f"{command}\n{done.output}"


def test_a_command_that_an_error_names_is_of_the_log_that_was_named(tmp_path: Path) -> None:
    other = Shell(tmp_path / "an other")
    other.home.mkdir()
    env = {"HOME": str(tmp_path), "COLUMNS": "80"}
    named = ["--store", str(other.store)]
    told = [invoke([*words, *named], env=env).stderr for words in (["sessions"], ["sessions", "--scope", "x"])]
    made, scoped = (MARKED.findall(text)[0][0] for text in told)
    assert (made, scoped) == (f"clew demo --store '{other.store}'", f"clew demo --scope x --store '{other.store}'")
    assert "`clew demo`" in invoke(["sessions"], env=env).stderr
    other.talked([{"role": "user", "content": "Hello"}], 1_000)
    lost = invoke(["show", "nobody", *named], env=env).stderr
    listed = invoke(shlex.split(MARKED.findall(lost)[0][0])[1:], env=env)
    assert (listed.exit_code, "talk" in listed.stdout) == (0, True)
