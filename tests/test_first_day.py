"""A newcomer's first day: a client is wired, works, the machine is started anew, it works again, and all is as before.

Everything is as a user has it: the command in processes of its own, a gateway that nobody watches. The client is a few
lines that do what Claude Code does with its settings; the provider is clew's strict one.
"""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from clew.config import Places
from clew.installing.formats import jsonc
from clew.installing.plugs import Plug
from clew.installing.programs import PROGRAMS
from clew.installing.vanished import is_passing, mend, vanished
from clew.installing.wiring import Installer
from clew.testing import StrictProvider

if sys.platform == "win32":
    pytest.skip("there is no such gateway on Windows yet", allow_module_level=True)

SETTINGS = '{\n  // mine\n  "model": "opus",\n  "hooks": {"UserPromptSubmit": []},\n}\n'
ASKED = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}

HEADERS = {"x-api-key": "k", "content-type": "application/json", "anthropic-version": "2023-06-01"}


@dataclass
class FirstDay:
    """A home with a client's settings, an environment with clew in it, and a provider."""

    home: Path
    environment: Path
    port: int
    provider: StrictProvider
    variables: dict[str, str] = field(default_factory=dict)  # of the project in which somebody works

    def clew(self, *args: str, code: int = 0) -> str:
        done = subprocess.run(
            [self.environment / "bin" / "python", "-P", "-m", "clew", *args],
            env=self.env,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout + done.stderr

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.defpath, "LANG": "C.UTF-8", "COLUMNS": "200", **self.variables}

    @property
    def settings(self) -> Path:
        return self.home / ".claude" / "settings.json"

    def process(self) -> int:
        """The gateway's."""
        return int((self.home / ".local/share/clew/gateway/running").read_text())

    def reboot(self) -> None:
        """All processes are gone, at once."""
        process = self.process()
        os.kill(process, signal.SIGKILL)
        while self.answers():
            time.sleep(0.01)

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True

    def prompt(self) -> str:
        """What a person sees who says hello: what a hook says that keeps the prompt back, or the model's answer."""
        settings: Any = jsonc.read(self.settings.read_text())
        for group in settings.get("hooks", {}).get("UserPromptSubmit", []):
            for hook in group["hooks"]:
                event = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "hello"})
                said = subprocess.run(
                    hook["command"], shell=True, input=event, env=self.env, capture_output=True, text=True, check=False
                ).stdout
                if said and (told := json.loads(said)).get("decision") == "block":
                    return str(told["reason"])
        parts = urlsplit(settings["env"]["ANTHROPIC_BASE_URL"])
        line = http.client.HTTPConnection(str(parts.hostname), parts.port)
        line.request("POST", "/v1/messages", json.dumps(ASKED), HEADERS)
        try:
            return f"{line.getresponse().status}"
        finally:
            line.close()


def _runs(process: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return bool(found.stdout.strip()) and not found.stdout.startswith("Z")  # whoever adopted it may not look


def environment(folder: Path) -> Path:
    """An environment like the one that runs this, with the command in it."""
    (folder / "bin").mkdir(parents=True)
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", folder)
    (folder / "lib").symlink_to(Path(sys.prefix) / "lib")
    (folder / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    script = folder / "bin" / "clew"
    script.write_text(f"#!{folder}/bin/python\nfrom clew.__main__ import main\nmain()\n")
    script.chmod(0o755)
    return folder


@pytest.fixture
def day(tmp_path: Path) -> Iterator[FirstDay]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    home = tmp_path / "home"
    (home / ".config" / "clew").mkdir(parents=True)
    with StrictProvider(window=200_000) as provider:
        (home / ".config/clew/config.toml").write_text(
            f'[gateway]\nport = {port}\n[gateway.upstreams.strict]\nkind = "anthropic"\nurl = "{provider.url}"\n'
        )
        (home / ".claude").mkdir()
        made = FirstDay(home, environment(tmp_path / "env"), port, provider)
        made.settings.write_text(SETTINGS)
        yield made
        made.clew("install", "--remove", "--yes")
        made.clew("serve", "--stop")


def test_installed_worked_rebooted_worked_and_gone(day: FirstDay) -> None:
    before = {path: path.read_bytes() for path in day.home.rglob("*") if path.is_file()}
    said = day.clew("install", "claude", "--gateway", "--yes")
    assert f"runs at http://127.0.0.1:{day.port}, in the background" in said
    assert "serve.log" in said
    assert "`clew serve --stop` ends it" in said
    assert day.prompt() == "200"
    first = day.process()
    assert f"(process {first})" in day.clew("serve", "--status")

    day.reboot()
    assert "does not run" in day.clew("serve", "--status", code=1)
    assert day.prompt() == "200", "the client starts it"
    assert day.process() != first
    assert len(day.provider.heard) == 2
    kept = day.home / ".local/share/clew/gateway"
    assert {path.stat().st_mode & 0o777 for path in kept.iterdir()} == {0o600}
    assert kept.stat().st_mode & 0o777 == 0o700

    last = day.process()
    assert "has ended" in day.clew("install", "--remove", "--yes")
    assert not day.answers()
    assert not _runs(last)
    after = {path: path.read_bytes() for path in day.home.rglob("*") if path.is_file()}
    assert {path for path in after if path not in before} == {day.home / ".local/share/clew/clew.db"}, "the log alone"
    assert {path: after[path] for path in before} == before


@pytest.mark.nightly
def test_settings_of_the_project_whose_client_starts_it_are_not_those_of_all(day: FirstDay) -> None:
    day.clew("install", "claude", "--gateway", "--yes")
    day.reboot()
    day.variables["CLEW_STORE"] = str(day.home / "project.db")
    assert day.prompt() == "200"
    assert not (day.home / "project.db").exists()
    assert (day.home / ".local/share/clew/clew.db").exists()
    day.variables.clear()


@pytest.mark.nightly
def test_many_who_start_it_at_once_have_one(day: FirstDay) -> None:
    day.clew("install", "claude", "--gateway", "--yes")
    day.reboot()
    command = [str(day.environment / "bin/clew"), "hook", "claude-gateway"]
    many = [subprocess.Popen(command, env=day.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for _ in range(4)]
    assert [one.communicate()[0] for one in many] == [b""] * 4
    assert day.prompt() == "200"
    assert (day.home / ".local/share/clew/gateway/serve.log").read_text().count("clew serves") == 2, "one a start"


@pytest.mark.nightly
def test_one_that_cannot_start_is_told_in_one_line(day: FirstDay) -> None:
    day.clew("install", "claude", "--gateway", "--yes")
    day.reboot()
    with socket.create_server(("127.0.0.1", day.port)):
        said = day.prompt()
    assert "clew's gateway does not start" in said
    assert f"cannot listen on 127.0.0.1, port {day.port}" in said
    assert "clew install claude --remove" in said
    assert "\n" not in said


@pytest.mark.nightly
def test_nothing_is_written_where_it_does_not_start(day: FirstDay) -> None:
    with socket.create_server(("127.0.0.1", day.port)):
        said = day.clew("install", "claude", "--gateway", "--yes", code=1)
    assert "cannot listen" in said
    assert day.settings.read_text() == SETTINGS


@pytest.mark.nightly
def test_an_environment_that_was_moved_is_named_and_mended(day: FirstDay) -> None:
    day.clew("install", "claude", "--gateway", "--yes")
    day.clew("install", "claude", "--yes")
    old = day.environment
    day.environment = old.rename(old.with_name("moved"))
    assert day.prompt() == "200", "it runs yet"
    day.reboot()
    said = day.prompt()
    assert f"clew is gone from {old}/bin/clew" in said
    assert "clew install claude --gateway" in said

    told = day.clew("doctor", code=1)
    assert f"Claude Code is told to run {old}/bin/clew, which is gone" in told
    assert f"is started by {old}/bin/clew, which is gone" in told
    assert "clew doctor --repair" in told
    assert "where clew is now" in day.clew("doctor", "--repair")
    assert "no problem found" in day.clew("doctor")
    assert str(old) not in day.settings.read_text() + (day.home / ".claude.json").read_text()
    assert day.prompt() == "200"
    day.clew("install", "--remove", "--yes")
    assert day.settings.read_text() == SETTINGS
    assert not (day.home / ".claude.json").exists()


@pytest.mark.nightly
def test_who_runs_clew_from_a_cache_is_warned(day: FirstDay, tmp_path: Path) -> None:
    day.environment = environment(tmp_path / "uv/archive-v0/WDcQl")
    said = day.clew("install", "claude", "--gateway", "--dry-run")
    assert "archive-v0/WDcQl/bin/clew is in a cache, and goes when that is cleared: uv tool install clew" in said
    assert "started in the background" in said
    assert not day.answers()


@pytest.mark.nightly
def test_tools_that_a_client_starts_start_the_gateway_too(day: FirstDay) -> None:
    day.clew("install", "claude", "--gateway", "--yes")
    day.reboot()
    command = [str(day.environment / "bin/python"), "-P", "-m", "clew", "plugin", "pi"]
    with subprocess.Popen(command, env=day.env, cwd=day.home, stdin=subprocess.PIPE) as plugin:
        while not day.answers():
            assert plugin.poll() is None
            time.sleep(0.05)
        assert plugin.stdin is not None
        plugin.stdin.close()


GONE, HERE = ("/gone/clew",), (sys.executable, "-P", "-m", "clew")
TOLD = [name for name, program in PROGRAMS.items() if program.starting or program.plugs]


def wired(tmp_path: Path, name: str) -> Installer:
    """A client whose files say all that clew writes there, with a command that is gone."""
    installer, program = Installer(Places({"HOME": str(tmp_path)}, tmp_path)), PROGRAMS[name]
    for kind, plugs in (
        ("gateway", program.gateway_plugs("http://127.0.0.1:1", GONE)),
        ("plugs", (program.plugs or _none)(GONE)),
    ):
        installer.install(installer.planned(program, kind, plugs))
    return installer


@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if program.gateway])
def test_what_is_gone_is_found_in_whatever_a_client_was_given(tmp_path: Path, name: str) -> None:
    found = vanished(wired(tmp_path, name))
    assert {(one.client.name, one.program) for one in found} == ({(name, "/gone/clew")} if name in TOLD else set())


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", TOLD)
def test_what_is_gone_is_mended_in_place_whoever_wrote_it(tmp_path: Path, name: str, known: bool) -> None:
    """Somebody may have typed it, or edited what clew wrote."""
    installer = wired(tmp_path, name)
    files = [Path(record.file) for record in installer.records()]
    if not known:
        shutil.rmtree(installer.kept)
    before = "".join(file.read_text() for file in files)
    for one in vanished(installer):
        assert mend(installer, one, HERE)
    assert vanished(installer) == []
    assert "/gone/clew" in before
    text = "".join(file.read_text() for file in files)
    assert "/gone/clew" not in text
    assert text.count(sys.executable) >= before.count("/gone/clew") > 0
    program = PROGRAMS[name]
    assert installer.is_wired([*program.gateway_plugs("http://127.0.0.1:1", HERE), *(program.plugs or _none)(HERE)])
    for record in installer.records():
        installer.uninstall(record, installer.unplanned(record))
    assert all(file.exists() != known for file in files)


def test_a_path_that_somebody_wrote_into_a_clients_file_is_noticed_and_mended(tmp_path: Path) -> None:
    installer = Installer(Places({"HOME": str(tmp_path)}, tmp_path))
    installer.install(installer.planned(PROGRAMS["claude"], "plugs", (PROGRAMS["claude"].plugs or _none)(HERE)))
    file, own = tmp_path / ".claude/settings.json", tmp_path / ".claude.json"
    edited = file.read_text().replace(f'{sys.executable} -P -m clew hook claude"', '/gone/clew hook claude"', 1)
    assert edited != file.read_text()
    theirs = '{"hooks": [{"type": "command", "command": "/gone/mine hook me"}]}'
    file.write_text(edited.replace('"PostToolUse": [', f'"PostToolUse": [{theirs}, ', 1))
    server = {"command": "/gone/clew", "args": ["mcp", "--conversation", "one"]}
    said = json.loads(own.read_text()) | {"projects": {"/here": {"mcpServers": {"clew": server}}}}
    own.write_text(json.dumps(said))
    found = vanished(installer)
    assert [one.program for one in found] == ["/gone/clew", "/gone/clew"]
    assert all(mend(installer, one, HERE) for one in found)
    assert vanished(installer) == []
    server = json.loads(own.read_text())["projects"]["/here"]["mcpServers"]["clew"]
    assert server == {"command": sys.executable, "args": ["-P", "-m", "clew", "mcp", "--conversation", "one"]}
    assert "/gone/clew" not in file.read_text()
    for record in installer.records():
        installer.uninstall(record, installer.unplanned(record))
    assert json.loads(file.read_text()) == {"hooks": {"PostToolUse": [json.loads(theirs)]}}
    assert json.loads(own.read_text()) == {"projects": said["projects"] | {"/here": {"mcpServers": {"clew": server}}}}


def test_what_somebody_mended_by_hand_is_not_told(tmp_path: Path) -> None:
    installer = wired(tmp_path, "codex")
    for record in installer.records():
        file = Path(record.file)
        file.write_text(file.read_text().replace("/gone/clew", sys.executable))
    assert vanished(installer) == []


def _none(clew: tuple[str, ...]) -> tuple[Plug, ...]:
    return ()


@pytest.mark.parametrize(
    ("command", "passing"),
    [
        ("/home/u/.cache/uv/archive-v0/WDcQl/bin/clew", True),
        ("/home/u/.cache/pipx/.cache/a1/bin/clew", True),
        ("/home/u/.local/share/uv/tools/clew/bin/clew", False),
        ("/home/u/.local/share/pipx/venvs/clew/bin/clew", False),
    ],
)
def test_caches_are_known(command: str, passing: bool) -> None:
    assert is_passing(Path(command)) == passing


@pytest.mark.nightly
def test_whoever_was_told_to_stop_does(day: FirstDay) -> None:
    assert "no gateway runs" in day.clew("serve", "--status", code=1)
    day.clew("serve", "--background")
    assert "(process" in day.clew("serve", "--background"), "once is enough"
    assert "`clew serve --stop` ends it" in day.clew("serve", code=1)
    assert "started otherwise" in day.clew("serve", "--background", "--compaction", "answer", code=1)
    assert "has ended" in day.clew("serve", "--stop")
    assert "nothing to end" in day.clew("serve", "--stop")
    assert not (day.home / ".local/share/clew/gateway").exists()
    assert "exclude each other" in day.clew("serve", "--status", "--stop", code=2)
    assert "can be reached from elsewhere" in day.clew("serve", "--background", "--host", "0.0.0.0", code=2)
