"""Tools: which calls fit, what is permitted, and which paths are inside."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clew.agent.tools import Outcome, PermissionRule, Permissions, Tool, Toolbox, shown, tools

FREE = Permissions(write="allow", run="allow")
NAMES = ["read_file", "list_files", "search", "write_file", "edit_file", "run"]


async def call(root: Path, name: str, *, anywhere: bool = False, size: int = 30_000, **arguments: Any) -> Outcome:
    return await Toolbox(tools(root, anywhere=anywhere, size=size), FREE).call(name, json.dumps(arguments))


async def told(root: Path, name: str, **arguments: Any) -> str:
    """What comes of a call that must not fail."""
    outcome = await call(root, name, **arguments)
    assert not outcome.failed, outcome.text
    return outcome.text


async def refused(root: Path, name: str, **arguments: Any) -> str:
    """What is said of a call that must fail."""
    outcome = await call(root, name, **arguments)
    assert outcome.failed, outcome.text
    return outcome.text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one file in it, and something outside that is nobody's business."""
    (tmp_path / "secret.txt").write_text("hands off\n")
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    return root


# --- calls ----------------------------------------------------------------------------------------------------------


def test_every_tool_says_what_it_takes() -> None:
    made = tools(Path())
    assert [t.name for t in made] == NAMES
    assert [t.asks for t in made] == ["read", "read", "read", "write", "write", "run"]
    for tool in made:
        assert tool.description
        assert tool.parameters["additionalProperties"] is False
        assert set(tool.parameters["required"]) <= set(tool.parameters["properties"])
        json.dumps(tool.parameters)


@pytest.mark.parametrize("name", [*NAMES, "rm", ""])
@pytest.mark.parametrize(
    "arguments",
    [
        *("[]", "null", '"path"', "{", "[" * 100_000, '{"path": 3}', '{"path": "a.txt", "x": 1}', '{"path": "\u0000"}'),
        *('{"path": "\ud800"}', '{"command": ["ls"]}', '{"pattern": 1}', '{"command": "ls", "seconds": NaN}'),
    ],
)
async def test_what_does_not_fit_is_said(root: Path, name: str, arguments: str) -> None:
    outcome = await Toolbox(tools(root), FREE).call(name, arguments)
    assert outcome.failed
    assert outcome.text


async def test_all_that_is_wrong_is_said_at_once(root: Path) -> None:
    assert await refused(root, "read_file", file="a", lines=3) == (
        "read_file: path is missing; there is no 'file'; lines must be of type string, not 3. "
        "It takes path (string), lines (string, optional)"
    )
    assert "all must be of type boolean, not 1" in await refused(root, "edit_file", path="a", old="a", new="b", all=1)
    assert "seconds must be 0.1 to 3600, not 1e+99" in await refused(root, "run", command="true", seconds=1e99)
    assert "seconds must be of type number, not True" in await refused(root, "run", command="true", seconds=True)


async def test_null_is_the_same_as_leaving_out(root: Path) -> None:
    assert await told(root, "read_file", path="a.txt", lines=None) == "1\tone\n2\ttwo\n3\tthree"
    assert "path must be" in await refused(root, "read_file", path=None)


# --- permissions ----------------------------------------------------------------------------------------------------


CALLS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "read": ("read_file", {"path": "a.txt"}),
    "write": ("write_file", {"path": "b.txt", "content": "b\n"}),
    "run": ("run", {"command": "touch b.txt"}),
}


@pytest.mark.parametrize("asks", CALLS)
@pytest.mark.parametrize("answer", [True, False, None])
@pytest.mark.parametrize("rule", ["allow", "ask", "deny"])
async def test_only_what_is_permitted_is_done(root: Path, asks: str, answer: bool | None, rule: PermissionRule) -> None:
    asked: list[str] = []

    async def ask(tool: Tool, arguments: Mapping[str, Any], preview: str) -> bool:
        assert arguments == CALLS[asks][1]
        assert not (root / "b.txt").exists()
        asked.append(preview)
        return bool(answer)

    permissions = Permissions(**{asks: rule}, ask=None if answer is None else ask)
    name, arguments = CALLS[asks]
    outcome = await Toolbox(tools(root), permissions).call(name, json.dumps(arguments))
    done = rule == "allow" or (rule == "ask" and answer is True)
    assert outcome.failed != done
    assert (root / "b.txt").exists() == (done and asks != "read")
    assert len(asked) == (rule == "ask" and answer is not None)
    if not done:
        assert "was not carried out" in outcome.text


async def test_nobody_there_means_no() -> None:
    headless = Toolbox(tools(Path()), Permissions())
    assert (await headless.call("run", '{"command": "true"}')).text == (
        "run was not carried out: nobody is here to permit it"
    )


async def test_who_is_asked_sees_what_would_be_done(root: Path) -> None:
    by_name = {t.name: t for t in tools(root)}
    edit = await by_name["edit_file"].plan({"path": "a.txt", "old": "two", "new": "2"})
    assert edit.preview == "--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    write = await by_name["write_file"].plan({"path": "new.txt", "content": "x"})
    assert write.preview == "--- /dev/null\n+++ new.txt\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"
    long = "echo " + "x" * 100_000
    assert (await by_name["run"].plan({"command": long})).preview == long  # nothing is hidden from who must judge
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"


async def test_what_cannot_be_done_is_not_asked_for(root: Path) -> None:
    async def ask(*_: Any) -> bool:
        raise AssertionError("asked")

    outcome = await Toolbox(tools(root), Permissions(ask=ask)).call("edit_file", '{"path":"a.txt","old":"x","new":"y"}')
    assert outcome.failed


# --- paths ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["../secret.txt", "link", "folder/secret.txt", "{}/secret.txt", "a/../../secret.txt"])
async def test_no_path_leads_out(root: Path, path: str) -> None:
    (root / "link").symlink_to("../secret.txt")
    (root / "folder").symlink_to("..")
    path = path.format(root.parent)
    for name, arguments in {
        "read_file": {},
        "list_files": {},
        "search": {"pattern": "hands"},
        "write_file": {"content": "x"},
        "edit_file": {"old": "hands", "new": "x"},
    }.items():
        assert "outside" in await refused(root, name, path=path, **arguments)
    assert (root.parent / "secret.txt").read_text() == "hands off\n"
    assert "hands off" not in await told(root, "search", pattern="hands")  # nor does a walk follow links
    assert await told(root, "read_file", path=path.replace("a/..", "."), anywhere=True) == "1\thands off"


async def test_new_files_cannot_be_made_outside_through_a_link(root: Path) -> None:
    (root / "dangling").symlink_to("../new.txt")
    assert "outside" in await refused(root, "write_file", path="dangling", content="x")
    assert not (root.parent / "new.txt").exists()


async def test_a_link_inside_is_written_through_and_stays_a_link(root: Path) -> None:
    (root / "link").symlink_to("a.txt")
    await told(root, "edit_file", path="link", old="one", new="1")
    assert (root / "link").is_symlink()
    assert (root / "a.txt").read_text() == "1\ntwo\nthree\n"


async def test_what_is_no_file_is_refused(root: Path) -> None:
    os.mkfifo(root / "pipe")  # reading it would wait for ever
    (root / "loop").symlink_to("loop")
    for path, word in {
        "pipe": "not a regular file",
        ".": "is a folder",
        "loop": "",
        "a.txt/b": "",
        "x" * 300: "",
    }.items():
        assert word in await refused(root, "read_file", path=path)
    assert await refused(root, "read_file", path="b.txt") == "b.txt does not exist; there is a.txt"


def test_a_terminal_obeys_nothing_in_a_text() -> None:
    assert shown("a\tb\r\nc\x1b[2J\rd\u202e\u200be\ud800 é日　") == "a\tb\nc�[2J�d��e� é日　"
