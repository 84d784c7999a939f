"""Models of one's own: the commands, and the settings of docs/models.md over a server on loopback, without a key."""

import os
import re
import tomllib
from pathlib import Path

import pytest

from clew import SQLite
from clew.config import engine, load
from clew.config.wiring import author
from clew.core.items import Frame
from clew.errors import BadConfig
from clew.llm import read
from clew.steps.chapters.by_model import ByModel
from clew.testing.provider import Answer, Call, StrictProvider
from shell import Typed, typed

PAGE = (Path(__file__).parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
NAMES = ["qwen3:8b", "qwen3-8b"]
MINE = ("CLEW_", "XDG_", "OPENAI_", "ANTHROPIC_")


def clew(folder: Path, *args: str, config: str = "", **more: str) -> Typed:
    """A command with this configuration, where no key is set."""
    (folder / "config.toml").write_text(config)
    here = {"HOME": str(folder), "CLEW_CONFIG": str(folder / "config.toml"), "COLUMNS": "200"}
    env = {k: v for k, v in os.environ.items() if not k.startswith(MINE)} | here | more
    return typed(folder, env, *args)


def at(url: str, block: str) -> str:
    """The same settings for a server that is here."""
    return re.sub(r"http://127\.0\.0\.1:\d+", url, block)


def test_the_page_has_a_block_for_each_server() -> None:
    assert [read(tomllib.loads(block)["agent"]["model"]).name for block in BLOCKS] == NAMES


@pytest.mark.parametrize(("name", "block"), [*zip(NAMES, BLOCKS, strict=True)])
def test_the_settings_of_the_page_work_without_a_key(name: str, block: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the build number is 7431\n")
    script = [Answer("Hello."), Answer("", (Call("read_file", {"path": "notes.txt"}),)), Answer("It is 7431.")]
    with StrictProvider(script) as server:
        config = at(server.url, block)
        asked = clew(tmp_path, "model", "ask", "Say hello.", config=config)
        assert (asked.returncode, asked.stdout) == (0, "Hello.\n"), asked.stderr
        done = clew(tmp_path, "run", "What is the build number?", config=config)
        assert (done.returncode, done.stdout) == (0, "It is 7431.\n"), done.stderr
    assert {(h.path, h.body["model"]) for h in server.heard} == {("/v1/chat/completions", name)}
    assert {h.headers["authorization"] for h in server.heard} == {"Bearer none"}


@pytest.mark.parametrize(("name", "block"), [*zip(NAMES, BLOCKS, strict=True)])
async def test_the_window_of_the_page_holds_for_the_agent_and_for_notes(name: str, block: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(block)
    config = load({"HOME": str(tmp_path), "CLEW_CONFIG": str(tmp_path / "config.toml")}, tmp_path)
    made = engine(config, SQLite(":memory:"))
    assert (await made.limits.windows.model("", Frame("openai_chat", name))).window == 32_768
    notes = author(config)
    assert isinstance(notes, ByModel)
    assert notes.model.window == 32_768
    await made.close()
    await made.store.close()


def test_a_server_that_wants_a_key_is_asked_as_the_sdk_is_told(tmp_path: Path) -> None:
    with StrictProvider([Answer("Hello.")]) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "the-key"}
        asked = clew(tmp_path, "model", "ask", "Say hello.", "--model", "openai/qwen3-8b", **env)
        done = clew(tmp_path, "run", "Say hello.", "--model", "openai/qwen3-8b", **env)
        assert (asked.stdout, done.stdout) == ("Hello.\n", "Hello.\n"), asked.stderr + done.stderr
    assert {h.headers["authorization"] for h in server.heard} == {"Bearer the-key"}
    assert [h.path for h in server.heard] == ["/v1/chat/completions", "/v1/responses"]


@pytest.mark.parametrize("key", ["agent", "summary"])
def test_a_configuration_that_names_no_model_says_what_to_write_instead(key: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f'[{key}]\nmodel = "local"\n')
    with pytest.raises(BadConfig) as caught:
        load({"HOME": str(tmp_path), "CLEW_CONFIG": str(tmp_path / "config.toml")}, tmp_path)
    (problem,) = caught.value.problems
    assert problem.startswith(f'~/config.toml:2: {key}.model is "local"; expected ')
    assert "openai/NAME, " in problem
    assert problem.endswith('or a model of your own server, such as "http://127.0.0.1:11434/v1#llama3"')


@pytest.mark.parametrize("command", [("run", "Hi."), ("model", "ask", "Hi.")])
def test_without_a_model_the_command_says_how_to_name_one(command: tuple[str, ...], tmp_path: Path) -> None:
    done = clew(tmp_path, *command)
    assert done.returncode == 2
    assert "no model is set: use --model NAME or `clew config set agent.model NAME`" in done.stderr
    unknown = clew(tmp_path, *command, "--model", "local")
    assert unknown.returncode == 1
    assert unknown.stderr.count("\n") == 1
    assert "http://127.0.0.1:11434/v1#llama3" in unknown.stderr


def test_the_list_says_what_is_missing_and_no_key(tmp_path: Path) -> None:
    shown = clew(tmp_path, "model", "list", OPENAI_API_KEY="sk-secret")
    assert "ready, with OPENAI_API_KEY" in shown.stdout
    assert "no key: set ANTHROPIC_API_KEY" in shown.stdout
    assert "sk-secret" not in shown.stdout + shown.stderr
