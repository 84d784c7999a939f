"""Writing and editing files: exactly what was asked, all of it or nothing."""

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agent.tools import Permissions, Tool, Toolbox, tools
from clew.agent.tools.editing import LARGE, difference
from test_workshop import FREE, call, refused, root, told

__all__ = ["root"]


async def edited(root: Path, data: bytes, old: str, new: str, all: bool = False) -> bytes:
    (root / "f").write_bytes(data)
    await told(root, "edit_file", path="f", old=old, new=new, all=all)
    return (root / "f").read_bytes()


async def test_an_edit_replaces_what_is_there_once_and_shows_the_difference(root: Path) -> None:
    assert await told(root, "edit_file", path="a.txt", old="two\nthree", new="2\n3") == (
        "--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+3\n"
    )
    assert (root / "a.txt").read_text() == "one\n2\n3\n"


async def test_what_surrounds_an_edit_stays_byte_for_byte(root: Path) -> None:
    assert await edited(root, b"a\r\nb\r\nc", "a\nb", "x\ny\nz") == b"x\r\ny\r\nz\r\nc"  # CRLF; no end of the last line
    assert await edited(root, b"a\r\nb\r\n", "a\r\nb", "x\n") == b"x\r\n\r\n"
    assert await edited(root, b"a\r\nb\nc\nd\n", "b\nc", "x\ny") == b"a\r\nx\ny\nd\n"  # mixed
    assert await edited(root, b"a\r\nb\r\n", "a", "x\ny") == b"x\r\ny\r\nb\r\n"
    assert await edited(root, b"a\nb\n", "a", "x\r") == b"x\r\nb\n"
    assert await edited(root, b"\xef\xbb\xbfa\n", "a", "b") == b"\xef\xbb\xbfb\n"
    assert await edited(root, b"caf\xe9 and more, a \x0c b\n", "more", "less") == b"caf\xe9 and less, a \x0c b\n"
    assert await edited(root, b"a.a\\1a.\n", "a.", r"\1\g<0>", all=True) == rb"\1\g<0>a\1\1\g<0>" + b"\n"


async def test_more_than_one_place_must_be_meant(root: Path) -> None:
    (root / "f").write_text("x = 1\ny = 2\nx = 1\n")
    assert await refused(root, "edit_file", path="f", old="x = 1", new="x = 3") == (
        "f: old is in it 2 times, at lines 1, 3: add lines around it, or set all"
    )
    assert "+x = 3\n y = 2\n-x = 1\n+x = 3" in await told(
        root, "edit_file", path="f", old="x = 1", new="x = 3", all=True
    )
    assert (root / "f").read_text() == "x = 3\ny = 2\nx = 3\n"


async def test_what_is_not_found_is_answered_with_what_comes_near(root: Path) -> None:
    (root / "f").write_text("def one():\n    return compute(1)\n\n\ndef two():\n    return 2\n")
    assert await refused(root, "edit_file", path="f", old="def one():\n  return compute(1)", new="") == (
        "f: old is not in it. These come near; mind every space:\n1\tdef one():\n2\t    return compute(1)"
    )
    assert "2\t    return compute(1)" in await refused(root, "edit_file", path="f", old="return komputed(1)", new="")
    (root / "g").write_bytes(b"a \x0c b\ncaf\xe9, please\r\n")
    assert "\n2\tcaf�, please" in await refused(root, "edit_file", path="g", old="cafe, please", new="")
    assert "line numbers" in await refused(root, "edit_file", path="f", old="1\tdef one():\n2\t    return", new="")
    assert "Nothing in it comes near" in await refused(root, "edit_file", path="f", old="Käse", new="")
    assert "Nothing in it comes near" in await refused(root, "edit_file", path="f", old="\n\n\n\n\n", new="")
    assert "old is empty" in await refused(root, "edit_file", path="f", old="", new="x")
    assert "nothing would change" in await refused(root, "edit_file", path="f", old="two", new="two")
    assert "surrogate" in await refused(root, "edit_file", path="f", old="two", new="\udce9")


async def test_mode_stays_and_nothing_else_is_left(root: Path) -> None:
    (root / "a.txt").chmod(0o751)
    await told(root, "edit_file", path="a.txt", old="one", new="1")
    await told(root, "write_file", path="a.txt", content="all new")
    assert (root / "a.txt").stat().st_mode & 0o7777 == 0o751
    assert "surrogate" in await refused(root, "write_file", path="a.txt", content="\ud800")
    await refused(root, "write_file", path=".", content="x")
    await refused(root, "write_file", path="a.txt/b", content="x")
    assert list(root.iterdir()) == [root / "a.txt"]
    assert (root / "a.txt").read_text() == "all new"


async def test_new_files_get_folders_and_the_usual_mode(root: Path) -> None:
    (root / "usual").touch()
    assert await told(root, "write_file", path="x/y/z.txt", content="a\r\nb") == (
        "--- /dev/null\n+++ x/y/z.txt\n@@ -0,0 +1,2 @@\n+a\r\n+b\n\\ No newline at end of file\n"
    )
    assert (root / "x/y/z.txt").read_bytes() == b"a\r\nb"
    assert (root / "x/y/z.txt").stat().st_mode == (root / "usual").stat().st_mode
    assert "[no line differs]" in await told(root, "write_file", path="x/y/z.txt", content="a\r\nb")


async def test_edits_made_together_all_land(root: Path) -> None:
    (root / "f").write_text("".join(f"<{n}>\n" for n in range(40)))
    edits = [call(root, "edit_file", path="f", old=f"<{n}>", new=f"[{n}]") for n in range(40)]
    assert not any(outcome.failed for outcome in await asyncio.gather(*edits))
    assert (root / "f").read_text() == "".join(f"[{n}]\n" for n in range(40))


async def test_a_file_that_changed_while_somebody_was_asked_is_not_overwritten(root: Path) -> None:
    async def ask(*_: object) -> bool:
        (root / "a.txt").write_text("somebody else's\none\n")
        return True

    toolbox = Toolbox(tools(root), Permissions(ask=ask))
    outcome = await toolbox.call("write_file", json.dumps({"path": "a.txt", "content": "mine"}))
    assert outcome.failed
    assert "has changed since" in outcome.text
    outcome = await toolbox.call("edit_file", json.dumps({"path": "a.txt", "old": "one", "new": "1"}))
    assert (root / "a.txt").read_text() == "somebody else's\n1\n"
    assert " somebody else's\n" in outcome.text  # the difference that was made, not the one foreseen


async def test_a_file_too_large_to_edit_is_refused_by_its_size(root: Path) -> None:
    with (root / "large").open("wb") as out:
        out.truncate(20_000_001)
    assert "20,000,001 bytes" in await refused(root, "edit_file", path="large", old="a", new="b")


async def test_a_large_difference_is_bounded_in_the_result(root: Path) -> None:
    outcome = await Toolbox(tools(root, size=1_000), FREE).call(
        "write_file", json.dumps({"path": "f", "content": "line\n" * 10_000})
    )
    assert len(outcome.text) < 1_100
    assert "characters left out" in outcome.text
    assert (root / "f").read_text() == "line\n" * 10_000


# --- differences ----------------------------------------------------------------------------------------------------


def applied(diff: str, before: str) -> str:
    """What a unified diff makes of a text, read as patch reads it."""
    old, new, at = before.split("\n"), [], 0
    diff = re.sub(r"\n\\ No newline at end of file\n", r"\\\n", diff)
    for line in diff.split("\n")[2:]:
        ended = not line.endswith("\\")
        if hunk := re.match(r"@@ -(\d+)(,0)?", line):
            start = int(hunk[1]) - (0 if hunk[2] else 1)
            new += [f"{kept}\n" for kept in old[at:start]]
            at = start
        elif line[:1] in (" ", "+", "-"):
            at += line[0] != "+"
            new += [line[1:].removesuffix("\\") + "\n" * ended] * (line[0] != "-")
    rest = "\n".join(old[at:]) if at < len(old) else ""
    return "".join(new) + rest


@given(*[st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=40).map("\n".join) for _ in range(2)])
def test_a_difference_makes_the_new_text_of_the_old(before: str, after: str) -> None:
    assert applied(difference("f", before, after), before) == after or before == after


@pytest.mark.parametrize("at", [0, 2, 3, 50, 98, 99])
def test_lines_far_from_a_change_are_left_out_and_counted(at: int) -> None:
    lines = [f"{n}\n" for n in range(100)]
    before, after = "".join(lines), "".join([*lines[:at], "new\n", *lines[at + 1 :]])
    diff = difference("f", before, after)
    assert len(diff.splitlines()) <= 11
    assert applied(diff, before) == after


def test_a_huge_difference_is_still_one() -> None:
    before = "".join(f"{n % 70}\n" for n in range(LARGE))
    after = "".join(f"{n % 71}\n" for n in range(LARGE))
    assert applied(difference("f", before, after), before) == after


# --- files that are run unasked ---------------------------------------------------------------------------------------

UNASKED = [
    *(".git/config", ".git/hooks/pre-commit", ".GIT/hooks/x", "sub/.git/config", ".git", ".husky/pre-commit", ".envrc"),
    *(
        ".vscode/tasks.json",
        ".vscode/settings.json",
        ".claude/settings.local.json",
        ".mcp.json",
        ".bashrc",
        ".ssh/config",
    ),
    *("link/config", "venv/lib/x.pth", ".devcontainer/devcontainer.json"),
]
ORDINARY = [
    ".github/workflows/ci.yml",
    ".gitignore",
    ".vscode/extensions.json",
    "Makefile",
    "conftest.py",
    "settings.json",
]


@pytest.mark.parametrize("path", [*UNASKED, *ORDINARY])
@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
async def test_who_may_write_may_not_write_what_is_run_unasked(root: Path, path: str, tool: str) -> None:
    (root / "link").symlink_to(".git")
    where = root / path
    if path == "link/config":
        (root / ".git").mkdir()
    if tool == "edit_file":
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text("old")
    arguments = json.dumps(
        {"path": path, "content": "new"} if tool == "write_file" else {"path": path, "old": "old", "new": "new"}
    )
    asked: list[tuple[str, str, str]] = []

    async def ask(tool: Tool, given: Mapping[str, Any], preview: str) -> bool:
        asked.append((tool.name, tool.asks, preview.splitlines()[0]))
        return False

    made = tools(root)
    alone = await Toolbox(made, Permissions(write="allow")).call(tool, arguments)
    denied = await Toolbox(made, Permissions(write="allow", run="deny", ask=ask)).call(tool, arguments)
    assert asked == []
    if path in ORDINARY:
        assert (alone.failed, where.read_text()) == (False, "new")
        return
    assert alone.text == f"{tool} of what others run unasked was not carried out: nobody is here to permit it"
    assert denied.text == f"{tool} of what others run unasked was not carried out: to run is not permitted here"
    said_no = await Toolbox(made, Permissions(write="allow", ask=ask)).call(tool, arguments)
    assert said_no.text == f"{tool} was not carried out: the user said no"
    assert asked == [(tool, "run", "This file is run by other programs, unasked.")]
    assert not where.exists() or where.read_text() == "old"
    free = await Toolbox(made, Permissions(write="allow", run="allow")).call(tool, arguments)
    assert (free.failed, where.read_text()) == (False, "new")
