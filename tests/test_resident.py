"""The one process that does clew's work for all clients of a user: who reaches it, and what becomes of it."""

import json
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.resident import calling
from clew.resident.calling import LONGEST_PATH, call, folder, own_folder, peer, place
from clew.resident.serving import end_all
from test_hooks import BIG, event, reported
from test_plugins import asking, pi_history

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
SEARCH = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "search", "arguments": {"text": "x"}}}


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A user's environment, whose residents end with the test."""
    known = {k: os.environ[k] for k in ("PATH", "TMPDIR", "COVERAGE_PROCESS_CONFIG") if k in os.environ}
    given = {**known, "HOME": str(tmp_path), "CLEW_SUMMARY_MODEL": "none"}
    yield given
    end_all(given)


def clew(env: dict[str, str], *words: str, said: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "clew", *words]
    return subprocess.run(command, env=env, cwd=env["HOME"], input=said, capture_output=True, timeout=60, check=False)


def large(env: dict[str, str], session: str = "s1") -> bytes:
    """An event with a result for which there is no room."""
    home = Path(env["HOME"])
    return event(
        home, "PostToolUse", session_id=session, tool_name="Bash", tool_response={"stdout": BIG}, **reported(home)
    )


def processes(env: dict[str, str]) -> list[int]:
    """The residents that run."""
    return [int(text) for file in folder(env).glob("*.lock") if (text := file.read_text()) and alive(int(text))]


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"


def until_ended(process: int) -> None:
    """Wait for a process of anybody's to end."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return
    with os.fdopen(watched, "rb", buffering=0):
        select.select([watched], [], [])


def test_hooks_plugins_and_tools_are_answered_by_one_process(env: dict[str, str]) -> None:
    assert b"updatedToolOutput" in clew(env, "hook", "claude", said=large(env)).stdout
    [first] = processes(env)
    ask = json.dumps({"id": 7, **asking("view", messages=pi_history(1))}).encode() + b"\n"
    plain, told = clew(env, "plugin", "pi", said=ask).stdout.splitlines()
    assert json.loads(plain) == {"plain": True}
    assert json.loads(told) == {"id": 7, "messages": None}
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in (HELLO, SEARCH))
    answers = [json.loads(line) for line in clew(env, "mcp", said=lines).stdout.splitlines()]
    assert [one["id"] for one in answers] == [1, 2]
    assert processes(env) == [first]


def test_what_it_is_asked_is_on_a_socket_of_the_user_alone(env: dict[str, str]) -> None:
    clew(env, "hook", "claude", said=large(env))
    where = place(env)
    assert stat.S_IMODE(where.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(where.socket.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(where.held.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(where.socket))
        assert peer(line) == os.getuid()


def test_another_home_key_or_setting_has_another_one(env: dict[str, str], tmp_path: Path) -> None:
    assert place(env) == place({**env, "TERM": "xterm", "CLAUDE_CODE_SSE_PORT": "4711", "PWD": "/"})
    for other in ({"HOME": str(tmp_path / "b")}, {"CLEW_SCOPE": "b"}, {"OPENAI_API_KEY": "b"}, {"https_proxy": "b"}):
        assert place(env).socket != place({**env, **other}).socket


def test_a_home_with_a_long_path_has_its_socket_elsewhere(env: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30)
    home.mkdir()
    far = {**env, "HOME": str(home)}
    try:
        assert b"updatedToolOutput" in clew(far, "hook", "claude", said=large(far)).stdout
        assert len(processes(far)) == 1
        where = place(far).socket
        assert len(str(where)) <= LONGEST_PATH
        assert stat.S_IMODE(where.parent.stat().st_mode) == 0o700
    finally:
        end_all(far)


def test_one_that_was_killed_leaves_nothing_that_disturbs_the_next(env: dict[str, str]) -> None:
    clew(env, "hook", "claude", said=large(env))
    [first] = processes(env)
    os.kill(first, signal.SIGKILL)
    assert place(env).socket.exists()
    assert b"updatedToolOutput" in clew(env, "hook", "claude", said=large(env, "s2")).stdout
    [second] = processes(env)
    assert second != first


def test_many_that_call_at_once_start_one(env: dict[str, str]) -> None:
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda said=said: found.append(clew(env, "hook", "claude", said=said).stdout))
        for said in [large(env, f"s{n}") for n in range(6)]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(b"updatedToolOutput" in told for told in found), place(env).log.read_text()
    assert len(processes(env)) == 1


def test_a_server_of_tools_goes_on_with_the_next_where_it_is_killed(env: dict[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "clew", "mcp"], env=env, cwd=env["HOME"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as client:
        assert client.stdin
        assert client.stdout

        def ask(asked: dict[str, Any]) -> Any:
            assert client.stdin
            assert client.stdout
            client.stdin.write(json.dumps(asked).encode() + b"\n")
            client.stdin.flush()
            return json.loads(client.stdout.readline())

        assert ask(HELLO)["id"] == 1
        [first] = processes(env)
        os.kill(first, signal.SIGSTOP)  # it has the question, and never answers
        threading.Timer(0.3, lambda: os.kill(first, signal.SIGKILL)).start()
        assert ask(SEARCH)["id"] == 2
        assert processes(env) != [first]
        client.stdin.close()
        assert client.wait(20) == 0


def test_one_that_is_killed_in_mid_answer_is_nothing_that_a_client_sees(env: dict[str, str]) -> None:
    clew(env, "hook", "claude", said=large(env))
    [first] = processes(env)
    os.kill(first, signal.SIGSTOP)
    threading.Timer(0.5, lambda: os.kill(first, signal.SIGKILL)).start()
    done = clew(env, "hook", "claude", said=large(env, "s2"))
    assert done.returncode == 0
    assert done.stdout == b"" or b"updatedToolOutput" in done.stdout  # as without clew, or by the next one


def test_after_an_upgrade_the_new_one_is_asked(tmp_path: Path, env: dict[str, str]) -> None:
    installed = tmp_path / "installed"
    shutil.copytree(Path(calling.__file__).parents[1], installed / "clew", ignore=shutil.ignore_patterns("__pycache__"))
    own = {**env, "PYTHONPATH": str(installed)}
    try:
        assert b"updatedToolOutput" in clew(own, "hook", "claude", said=large(own)).stdout
        [first] = processes(own)
        file = installed / "clew" / "engine" / "engine.py"
        file.write_bytes(file.read_bytes() + b"\n# upgraded\n")
        assert b"updatedToolOutput" in clew(own, "hook", "claude", said=large(own, "s2")).stdout
        until_ended(first)
        [second] = processes(own)
        assert second != first
    finally:
        end_all(own)


def test_it_ends_when_nobody_needs_it_and_leaves_nothing(env: dict[str, str]) -> None:
    code = (
        "import asyncio, os; from clew.resident.serving import Resident; asyncio.run(Resident(os.environ, 0.1).run())"
    )
    subprocess.run([sys.executable, "-c", code], env=env, timeout=30, check=True)
    assert not folder(env).parent.exists()


def test_it_ends_with_its_home(env: dict[str, str]) -> None:
    clew(env, "hook", "claude", said=large(env))
    [first] = processes(env)
    shutil.rmtree(folder(env))
    until_ended(first)


@pytest.mark.few(1)
@pytest.mark.parametrize("how", ["off", "closed", "somebody else's"])
def test_without_one_the_work_is_done_all_the_same(how: str, env: dict[str, str], tmp_path: Path) -> None:
    if how == "off":
        env["CLEW_RESIDENT"] = "off"
    else:
        folder(env).parent.mkdir(parents=True)
        if how == "closed":
            folder(env).write_text("a file, where its folder would be")
        else:
            folder(env).symlink_to(tmp_path)
    assert b"updatedToolOutput" in clew(env, "hook", "claude", said=large(env)).stdout
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in (HELLO, SEARCH))
    done = clew(env, "mcp", said=lines)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]
    ask = json.dumps({"id": 7, **asking("view", messages=pi_history(1))}).encode() + b"\n"
    assert json.loads(clew(env, "plugin", "pi", said=ask).stdout.splitlines()[-1]) == {"id": 7, "messages": None}
    assert not [*tmp_path.rglob("*.sock")]


def test_where_a_program_of_another_kind_listens_it_is_not_believed(env: dict[str, str]) -> None:
    where = place(env).socket
    own_folder(where.parent)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(where))
        other.listen()

        def lie() -> None:
            with other.accept()[0] as line:
                line.sendall(b"hello\n")

        liar = threading.Thread(target=lie)
        liar.start()
        assert call("hook", ["claude"], env, start=False) is None
        liar.join()


def test_settings_that_cannot_be_read_end_no_other_line(env: dict[str, str]) -> None:
    clew(env, "hook", "claude", said=large(env))
    [first] = processes(env)
    wrong = Path(env["HOME"]) / "shop"
    wrong.mkdir()
    (wrong / "clew.toml").write_text("budget = ")
    command = [sys.executable, "-m", "clew", "plugin", "pi"]
    done = subprocess.run(
        command, env=env, cwd=wrong, input=b'{"id": 1}\n', capture_output=True, timeout=60, check=False
    )
    assert b'"id"' not in done.stdout
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(place(env).socket))
        line.sendall(b"this is no greeting\n")
        assert line.recv(1) == b""
    assert b"updatedToolOutput" in clew(env, "hook", "claude", said=large(env, "s2")).stdout
    assert processes(env) == [first]
    assert "Traceback" not in place(env).log.read_text()


def test_nothing_that_was_said_or_keys_stand_in_its_log(env: dict[str, str]) -> None:
    key = "sk-ant-api03-" + "Ab1_" * 23 + "AAAA"
    own = {**env, "ANTHROPIC_API_KEY": key, "CLEW_SECRETS": "refuse"}
    try:
        line = asking("view", messages=[{"role": "user", "content": f"amber {key}"}])
        told = clew(own, "plugin", "pi", said=json.dumps({"id": 1, **line}).encode() + b"\n").stdout
        assert b"refused" in told
        clew(own, "hook", "claude", said=b'{"hook_event_name": "SessionStart", "source": "compact", "amber": 1')
        log = place(own).log.read_text()
        assert key not in log
        assert "amber" not in log
    finally:
        end_all(own)
