"""Clients' own configuration: written, shown first, and put back byte for byte, in homes of the tests' own."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from clew.installing.formats import jsonc
from clew.installing.programs import PROGRAMS
from shell import invoke

URL = "http://127.0.0.1:8377"
VARIABLES = (
    "XDG_CONFIG_HOME XDG_DATA_HOME CLAUDE_CONFIG_DIR CODEX_HOME PI_CODING_AGENT_DIR GEMINI_CLI_HOME "
    "CRUSH_GLOBAL_CONFIG OPENCODE_CONFIG GOOGLE_GEMINI_BASE_URL OPENAI_BASE_URL ANTHROPIC_BASE_URL CLEW_STORE"
).split()
FILES = {
    ".claude/settings.json": '{\n  "model": "opus",\n  "env": {\n    "A": "b"\n  }\n}\n',
    ".codex/config.toml": '# mine\nmodel = "gpt-5"\n\n[tui] # here\ntheme = "dark"\n',
    ".config/opencode/opencode.jsonc": '{\n\t// mine\n\t"model": "x", // kept\n\t"provider": {"openai": {}},\n}\n',
    ".pi/agent/models.json": '{"providers": {"ollama": {"baseUrl": "http://localhost:1/v1"}}}',
    ".gemini/.env": "# key\r\nGEMINI_API_KEY=k",
    ".qwen/settings.json": "",
    ".config/crush/crush.json": "{}",
    ".aider.conf.yml": "# mine\nread:\n  - A.md\ndark-mode: true\n",
}
NAMES = dict(zip(FILES, ["claude", "codex", "opencode", "pi", "gemini", "qwen", "crush", "aider"], strict=True))


class Machine:
    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *args: str, input: str = "", path: str = "") -> Result:
        if "--gateway" in args:  # what starts is in test_first_day.py
            args = (*args, "--no-start")
        env: dict[str, str | None] = {**dict.fromkeys(VARIABLES), "HOME": str(self.home), "PATH": path}
        return invoke(list(args), input=input, env=env)

    def file(self, name: str, text: str) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path


@pytest.fixture
def clew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    return Machine(home)


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_written_and_comes_back_byte_for_byte(clew: Machine, name: str) -> None:
    path = clew.file(name, FILES[name])
    before, client = path.read_bytes(), NAMES[name]
    assert clew("install", client, "--gateway", "--print").exit_code == 0
    assert path.read_bytes() == before
    done = clew("install", client, "--gateway", input="y\n")
    assert done.exit_code == 0, done.output
    program = PROGRAMS[client]
    text = path.read_text()
    read = program.format.read(text)
    for key, value in program.values(URL).items():
        found: Any = read
        for part in key:
            found = found[part]
        assert found == value
    again = clew("install", client, "--gateway", "--yes")
    assert "already" in again.output
    assert path.read_text() == text
    shown = clew("install", "--remove", client, "--dry-run", "--json")
    assert [row["undone"] for row in json.loads(shown.stdout)] == [False]
    [row] = json.loads(clew("install", "--remove", client, "--yes", "--json").stdout)
    assert (row["client"], row["file"], row["undone"]) == (client, str(path), True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", FILES)
def test_what_the_user_wrote_since_stays(clew: Machine, name: str) -> None:
    path, client = clew.file(name, FILES[name]), NAMES[name]
    clew("install", client, "--gateway", "--yes")
    program = PROGRAMS[client]
    mine = ("mine",)
    path.write_bytes(program.format.put(path.read_bytes().decode(), mine, "stays").encode())
    done = clew("install", "--remove", client, "--yes")
    assert "changed since" in done.output
    expected = dict(program.format.read(FILES[name]))
    assert program.format.read(path.read_bytes().decode()) == {**expected, "mine": "stays"}


def test_comments_survive(clew: Machine) -> None:
    path = clew.file(".config/opencode/opencode.jsonc", FILES[".config/opencode/opencode.jsonc"])
    clew("install", "opencode", "--gateway", "--yes")
    assert "// mine" in path.read_text()
    assert '"model": "x", // kept\n' in path.read_text()
    toml = clew.file(".codex/config.toml", FILES[".codex/config.toml"])
    clew("install", "codex", "--gateway", "--yes")
    assert toml.read_text().startswith("# mine\n")
    assert tomllib.loads(toml.read_text())["model_provider"] == "clew"


def test_no_is_no(clew: Machine) -> None:
    path = clew.file(".claude/settings.json", "{}")
    assert "+" in clew("install", "claude", "--gateway", input="n\n").output
    assert path.read_text() == "{}"


def test_a_new_file_goes_again(clew: Machine) -> None:
    (clew.home / ".claude").mkdir()
    clew("install", "claude", "--gateway", "--yes")
    path = clew.home / ".claude/settings.json"
    assert json.loads(path.read_text()) == {"env": {"ANTHROPIC_BASE_URL": URL}}
    clew("install", "--remove", "--yes")
    assert not path.exists()


def test_folders_that_were_not_there_go_again(clew: Machine) -> None:
    command = clew.home / "bin/opencode"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    assert clew("install", "opencode", "--gateway", "--yes", path=str(command.parent)).exit_code == 0
    assert (clew.home / ".config/opencode").is_dir()
    assert clew("install", "--remove", "opencode", "--yes").exit_code == 0
    assert not (clew.home / ".config").exists()


def test_one_that_cannot_be_put_back_keeps_no_other_from_it(clew: Machine) -> None:
    claude, aider = clew.file(".claude/settings.json", "{}"), clew.file(".aider.conf.yml", "")
    for name in ("claude", "aider"):
        assert clew("install", name, "--gateway", "--yes").exit_code == 0
    claude.write_text("{broken")
    undone = clew("install", "--remove", "--yes")
    assert undone.exit_code == 1
    assert "is not JSON" in undone.output
    assert aider.read_text() == ""


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (".claude/settings.json", "{broken", "is not JSON"),
        (".claude/settings.json", '{"env": 3}', "env is not an object"),
        (".codex/config.toml", "= 3", "is not TOML"),
        (".aider.conf.yml", "{a: b}\n", "plain"),
    ],
)
def test_what_cannot_be_read_is_left_alone(clew: Machine, name: str, text: str, told: str) -> None:
    path = clew.file(name, text)
    done = clew("install", NAMES[name], "--gateway", "--yes")
    assert done.exit_code == 1
    assert told in done.output
    assert path.read_text() == text


def test_links_stay_links_and_read_only_files_stay(clew: Machine) -> None:
    real = clew.file("dotfiles/claude.json", "{}\n")
    (clew.home / ".claude").mkdir()
    link = clew.home / ".claude/settings.json"
    link.symlink_to(real)
    clew("install", "claude", "--gateway", "--yes")
    assert link.is_symlink()
    assert URL in real.read_text()
    clew("install", "--remove", "--yes")
    assert real.read_text() == "{}\n"
    real.chmod(0o444)
    assert "read-only" in clew("install", "claude", "--gateway", "--yes").output
    real.unlink()
    assert "not there" in clew("install", "claude", "--gateway", "--yes").output


def test_who_is_not_here_and_who_has_no_file(clew: Machine) -> None:
    assert "not on this machine" in clew("install", "claude", "--gateway").output
    assert f"export COPILOT_PROVIDER_BASE_URL={URL}/v1" in clew("install", "copilot", "--gateway").output
    assert "not on this machine" in clew("install", "claude").output
    assert "neither tools nor hooks" in clew("install", "aider").output
    assert clew("install", "nobody", "--gateway").exit_code == 2
    assert "nothing to undo" in clew("install", "--remove").output


def test_the_list(clew: Machine) -> None:
    clew.file(".claude/settings.json", "{}")
    clew("install", "claude", "--gateway", "--yes")
    rows = {row["client"]: row for row in json.loads(clew("install", "--json").output)}
    assert list(rows) == list(PROGRAMS)
    assert (rows["claude"]["found"], rows["claude"]["gateway"]) == (True, True)
    assert (rows["codex"]["found"], rows["codex"]["gateway"]) == (False, False)


def test_a_project_that_comes_first_is_named(clew: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    clew.file(".claude/settings.json", '{"env": {"ANTHROPIC_BASE_URL": "https://company.example"}}')
    clew.file("project/.claude/settings.json", '{"env": {"ANTHROPIC_BASE_URL": "https://other.example"}}')
    monkeypatch.chdir(clew.home / "project")
    told = clew("install", "claude", "--gateway", "--print").output
    assert "comes before" in told
    assert "was https://company.example" in told


def test_json_keeps_its_look() -> None:
    assert jsonc.put('{"a": 1}', ("b", "c"), "d") == '{"a": 1, "b": {"c": "d"}}'
    assert jsonc.put('{\n    "a": 1 // x\n}', ("b",), "c") == '{\n    "a": 1, // x\n    "b": "c"\n}'
    assert jsonc.drop('{\n  "a": 1,\n  "b": 2\n}', ("b",)) == '{\n  "a": 1\n}'
