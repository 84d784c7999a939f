"""clew's tools and hooks in clients' own configuration: put there, and gone again without a trace."""

import json
import tomllib
from pathlib import Path

import pytest

from clew.installing.formats import jsonc, own_file, with_key
from clew.installing.programs import PROGRAMS
from test_installing import Machine, clew  # noqa: F401

PLUGGED = ("claude", "codex", "gemini", "qwen")
SETTINGS = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
}
OTHERS = {"matcher": "x", "hooks": [{"type": "command", "command": "mine"}]}
ODD = {
    "compact": '{"hooks":{"SessionStart":[{"matcher":"x","hooks":[]}]},"b":[1,2]}',
    "comments": '{\n  // mine\n  "hooks": {\n    "SessionStart": [\n      {"hooks": []}, // kept\n    ],\n  },\n}\n',
    "mark": '\ufeff{\n  "model": "opus"\n}\n',
    "windows": '{\r\n\t"hooks": {\r\n\t\t"SessionStart": []\r\n\t}\r\n}\r\n',
    "empty": "",
    "braces": "{}",
}


@pytest.mark.parametrize("name", PLUGGED)
@pytest.mark.parametrize("odd", ODD)
def test_odd_files_come_back_byte_for_byte(clew: Machine, name: str, odd: str) -> None:  # noqa: F811
    path = clew.file(SETTINGS[name], ODD[odd])
    before = path.read_bytes()
    assert clew("install", name, "--dry-run").exit_code == 0
    assert path.read_bytes() == before
    done = clew("install", name, "--yes")
    assert done.exit_code == 0, done.output
    text = path.read_bytes().decode("utf-8-sig")
    assert "clew" in json.dumps(jsonc.read(text))
    assert ("// mine" in text) == (odd == "comments")
    assert "already" in clew("install", name, "--yes").output
    assert clew("install", "--remove", name, "--yes").exit_code == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", PLUGGED)
def test_nothing_is_left_where_nothing_was(clew: Machine, name: str) -> None:  # noqa: F811
    command = clew.home / "bin" / name
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    before = sorted(clew.home.rglob("*"))
    assert clew("install", name, "--yes", path=str(command.parent)).exit_code == 0
    assert clew("install", "--remove", "--yes").exit_code == 0
    left = set(clew.home.rglob("*")) - set(before)
    assert {path for path in left if ".local" not in path.parts} == set()


@pytest.mark.parametrize("name", PLUGGED)
def test_what_would_change_is_told_where_the_client_is_not(clew: Machine, name: str) -> None:  # noqa: F811
    assert clew("install", name, "--yes").exit_code == 1
    done = clew("install", name, "--dry-run")
    assert done.exit_code == 0
    assert "is not on this machine" in done.output
    assert "byte for byte" in done.output
    assert not [*clew.home.rglob("*")]


@pytest.mark.parametrize("name", PLUGGED)
def test_only_ours_leaves_what_was_edited_since(clew: Machine, name: str) -> None:  # noqa: F811
    path = clew.file(SETTINGS[name], json.dumps({"hooks": {"SessionStart": [OTHERS]}}, indent=2))
    clew("install", name, "--yes")
    text = with_key(jsonc, path.read_text(), ("hooks", "SessionStart", "[]"), {"matcher": "later", "hooks": []})
    path.write_text(with_key(jsonc, text, ("mine",), "stays"))
    done = clew("install", "--remove", name, "--yes")
    assert "changed since" in done.output
    expected = {"hooks": {"SessionStart": [OTHERS, {"matcher": "later", "hooks": []}]}, "mine": "stays"}
    assert json.loads(path.read_text()) == expected


def test_gateway_and_tools_go_together(clew: Machine) -> None:  # noqa: F811
    text = '# mine\nmodel = "gpt-5"\n\n[tui] # here\ntheme = "dark"\n'
    config = clew.file(".codex/config.toml", text)
    for asked in (["install", "codex"], ["install", "codex", "--gateway"], ["install", "codex"]):
        assert clew(*asked, "--yes").exit_code == 0
    read = tomllib.loads(config.read_text())
    assert read["mcp_servers"]["clew"]["args"][-1] == "mcp"
    assert read["model_provider"] == "clew"
    rows = {row["client"]: row for row in json.loads(clew("install", "--json").output)}
    assert (rows["codex"]["gateway"], rows["codex"]["tools"]) == (True, True)
    assert clew("install", "--remove", "codex", "--yes").exit_code == 0
    assert config.read_text() == text


def test_a_status_line_of_the_user_stays(clew: Machine) -> None:  # noqa: F811
    own = {"statusLine": {"type": "command", "command": "mine"}}
    path = clew.file(".claude/settings.json", json.dumps(own))
    clew("install", "claude", "--yes")
    assert json.loads(path.read_text())["statusLine"] == own["statusLine"]
    path.write_text("{}")
    clew("install", "--remove", "--yes")
    clew("install", "claude", "--yes")
    assert "claude-status" in json.loads(path.read_text())["statusLine"]["command"]


@pytest.mark.parametrize("text", ["{broken", '{"hooks": []}', '{"hooks": {"SessionStart": {}}}', '{"mcpServers": 3}'])
def test_what_cannot_be_changed_is_left_with_all_other_files(clew: Machine, text: str) -> None:  # noqa: F811
    path, state = clew.file(".claude/settings.json", text), clew.file(".claude.json", "{}")
    done = clew("install", "claude", "--yes")
    if "mcpServers" in text:
        assert done.exit_code == 0
        return
    assert done.exit_code == 1
    assert "settings.json" in done.output
    assert (path.read_text(), state.read_text()) == (text, "{}")


def test_all_that_are_found_are_asked_for(clew: Machine) -> None:  # noqa: F811
    claude, qwen = clew.file(".claude/settings.json", "{}"), clew.file(".qwen/settings.json", "{}")
    done = clew("install", input="n\ny\n")
    assert done.exit_code == 0, done.output
    assert claude.read_text() == "{}"
    assert "clew" in qwen.read_text()
    assert "claude" in clew("install", "--yes").output
    assert "clew" in claude.read_text()


def test_a_file_of_our_own_goes_unless_somebody_wrote_in_it() -> None:
    text = with_key(own_file, "", own_file.OWN_TEXT, "export default 1\n")
    assert own_file.read(text) == {"text": "export default 1\n"}
    assert own_file.drop(text, own_file.OWN_TEXT) == ""


def test_every_client_says_where_its_files_are() -> None:
    plugged = {name: program.plugs(("clew",)) for name, program in PROGRAMS.items() if program.plugs}
    assert set(PLUGGED) <= plugged.keys()
    assert all(plug.files and plug.values for plugs in plugged.values() for plug in plugs)
    assert Path(plugged["claude"][0].files[-1]).name == ".claude.json"
