"""What tools printed, shown to people: on a terminal it is text, and as JSON it is exact without a raw control."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from unicodedata import category

import pytest

from clew import Engine, SQLite
from clew.core import rawjson
from clew.engine.append import Addition
from shell import Shell

EVIL = "a\x1b[2Jb\x9b31mc\x07d\u202ee\u2066f\u200bg\x85h\u2028i\x7fj\U000e0041k\r\nnext\tline é 😀 \u200d"
HIDDEN = {"Cc", "Cf", "Zl", "Zp"}


def dangerous(text: str) -> set[str]:
    """Characters that a terminal obeys, or that hide or turn round others."""
    return {c for c in text if category(c) in HIDDEN and c not in "\n\t"}


@pytest.fixture
def clew(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)

    async def fill() -> None:
        store = SQLite(shell.store)
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": EVIL}]}
        await Engine(store).prepare(Addition(body, "talk", scope="default"))
        await store.close()

    asyncio.run(fill())
    return shell


def the_id(clew: Shell) -> str:
    found: str = json.loads(clew("search", "next", "--json").stdout)[0]["id"]
    return found


@pytest.mark.few(1)
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("extra", [(), ("--lines", "1-2"), ("--grep", "b"), ("--json",)])
def test_a_recall_to_a_terminal_is_text(clew: Shell, extra: tuple[str, ...]) -> None:
    import pty
    import tty

    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    env = {**os.environ, "CLEW_STORE": str(clew.store), "XDG_CONFIG_HOME": str(clew.home)}
    command = [sys.executable, "-m", "clew.cli", "recall", the_id(clew), *extra]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, env=env, check=False)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    assert dangerous(shown) == set()
    assert {"b", "c"} <= set(shown)


def test_a_recall_to_a_program_is_the_original(clew: Shell) -> None:
    assert clew("recall", the_id(clew)).stdout_bytes == EVIL.encode()


@pytest.mark.parametrize(
    "command",
    [
        ("recall", "ID", "--json"),
        ("search", "next", "--json"),
        ("resume", "talk"),
        ("export", "talk"),
        ("export", "talk", "--format", "openai"),
        ("export", "talk", "--format", "claude-code"),
    ],
)
def test_json_has_escapes_for_what_cannot_be_seen_and_is_exact(clew: Shell, command: tuple[str, ...]) -> None:
    done = clew(*(the_id(clew) if word == "ID" else word for word in command))
    assert done.exit_code == 0, done.output
    assert dangerous(done.stdout) == set()
    if "search" not in command:
        read = str([json.loads(line) for line in done.stdout.splitlines()])
        assert str([EVIL])[2:-2] in read


def test_what_is_written_to_a_file_and_read_back_is_the_same(clew: Shell) -> None:
    file = clew.home / "talk.jsonl"
    assert clew("export", "talk", "-o", file).exit_code == 0
    assert dangerous(file.read_text(encoding="utf-8")) == set()
    assert clew("import", file, "--as", "copy").exit_code == 0
    assert json.loads(clew("resume", "copy").stdout)["messages"][0]["content"] == EVIL


def test_every_character_is_the_same_after_it_was_made_visible() -> None:
    every = [chr(code) for code in (*range(0xD800), *range(0xE000, 0x11_0000, 7), *range(0xE0000, 0xE0080))]
    for n in range(0, len(every), 1_000):
        some = every[n : n + 1_000]
        assert json.loads(rawjson.visible(rawjson.dumps(some))) == some
