"""The gateway that runs by itself: one starter for whoever needs it, and what it leaves for people to look at.

Hooks of clients come here at each prompt, so little is imported, and nothing that Python does not bring. Whether it
runs is told by a lock that it holds as long as it lives: a number that another process has after a reboot is never
taken for it.
"""

import json
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, NamedTuple

from clew.core import folders
from clew.core.processes import HAS_LOCKS, lock, older, private_file, started, try_lock
from clew.errors import BadRequest

if TYPE_CHECKING:
    import subprocess

PATIENCE = 20.0  # seconds until it answers
ENDING = 40.0  # seconds until it has ended: it lets answers that are under way come to their end
TURN = 0.05  # seconds between two looks
CLAIMING = 0.5  # seconds for somebody who only looks at the lock
ANSWERING = 2.0  # seconds for one that runs to say so
OWN_VARIABLES = "CLEW_"  # how they begin
NAME = b"server: clew"  # in the head of what it says of itself


class StartPlan(NamedTuple):
    """How it is started."""

    host: str
    port: int
    command: tuple[str, ...]
    installed: bool = False  # for clients, whose hooks start it again; else by a person
    settings: Mapping[str, str] = {}  # clew's own variables, as they were where it was wanted

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class BackgroundGateway:
    """The one that a user has on this machine."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.folder = folders.data(env) / "gateway"
        self.log = self.folder / "serve.log"
        self._home = folders.home(env)
        self._plan, self._lock = self.folder / "start.json", self.folder / "running"

    def plan(self) -> StartPlan | None:
        """How it is started; None: nobody said it shall be."""
        try:
            read = json.loads(self._plan.read_bytes())
            command, settings = tuple(read["command"]), dict(read.get("settings", {}))
            return StartPlan(read["host"], read["port"], command, read["installed"], settings)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, plan: StartPlan) -> None:
        """Start it so from now on."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        with private_file(self._plan, "w") as file:
            json.dump(plan._asdict(), file)

    def forget(self) -> None:
        """Leave nothing of one that has ended."""
        for file in (self._plan, self._lock, self.log, older(self.log)):
            file.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    # --- for the gateway itself ---------------------------------------------------------------------------------------

    def claim(self) -> IO[str] | None:
        """Be the one that runs, until what this gives is closed; None: there is one, or none is wanted any more."""
        if self.plan() is None:
            return None
        file, until = private_file(self._lock, "a"), time.monotonic() + CLAIMING
        while not try_lock(file):
            if time.monotonic() > until:
                file.close()
                return None
            time.sleep(TURN)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        return file

    # --- for everybody else -------------------------------------------------------------------------------------------

    def process(self) -> int | None:
        """Its number; None: it does not run."""
        try:
            with self._lock.open("r+") as file:
                said = file.read().strip()
                if not HAS_LOCKS:
                    plan = self.plan()
                    return int(said) if said and plan and answers(plan) else None
                return int(said) if not try_lock(file) and said else None
        except (OSError, ValueError):
            return None

    def ensure(self, patience: float = PATIENCE) -> str:
        """See to it that it answers; else why it does not, in one line. Nothing is done where nobody wants it."""
        plan = self.plan()
        if plan is None or answers(plan):
            return ""
        try:
            with self._plan.open("r+") as file:
                lock(file)  # who else starts it meanwhile waits, and finds it answers
                return self._made_to_answer(plan, patience)
        except OSError as error:
            return f"clew's gateway cannot be started: {error.filename or plan.command[0]}: {error.strerror}"

    def _made_to_answer(self, plan: StartPlan, patience: float) -> str:
        if answers(plan):
            return ""
        process = self._started(plan)
        until = time.monotonic() + patience
        while time.monotonic() < until:
            if answers(plan):
                return ""
            if process.poll() not in (None, 0):  # 0: another one came first
                return f"clew's gateway does not start: {self.last_line()}"
            time.sleep(TURN)
        return f"clew's gateway has not answered at {plan.url} for {patience:g} seconds: {self.log} may say why"

    def stop(self, ending: float = ENDING) -> bool:
        """End it, and wait until it has; False: none ran."""
        process = self.process()
        if process is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
        until = time.monotonic() + ending
        while self.process() == process:
            if time.monotonic() > until:
                os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))
                until += ending
            time.sleep(TURN)
        return True

    def last_line(self) -> str:
        """What it said last."""
        try:
            said = self.log.read_bytes()[-4_000:].decode("utf-8", "replace").strip().splitlines()
        except OSError:
            said = []
        return said[-1].removeprefix("clew: ") if said else "it said nothing"

    def _started(self, plan: StartPlan) -> "subprocess.Popen[bytes]":
        return started(plan.command, self.log, self._home, {**_not_ours(os.environ), **plan.settings})


def answers(plan: StartPlan) -> bool:
    """Whether clew's gateway answers there; another program's answer is none."""
    asked = b"GET /livez HTTP/1.0\r\nhost: %b\r\n\r\n" % plan.url.removeprefix("http://").encode()
    said = b""
    try:
        with socket.create_connection((plan.host, plan.port), ANSWERING) as line:
            line.sendall(asked)
            while NAME not in said and (part := line.recv(4_096)):
                said += part
    except OSError:
        return False
    return NAME in said


def checked(plan: StartPlan) -> StartPlan:
    """A plan that can be kept. Raises `BadRequest`."""
    if not plan.port:
        raise BadRequest("in the background a gateway needs a port that clients can know: --port N")
    if plan.host not in ("127.0.0.1", "::1", "localhost"):
        raise BadRequest(f"{plan.host} can be reached from elsewhere: run `clew serve` as a service of your own")
    return plan


def commanded(clew: Sequence[str], host: str, port: int, options: Sequence[str] = ()) -> tuple[str, ...]:
    """The command that runs it."""
    return (*clew, "serve", "--resident", "--host", host, "--port", str(port), *options)


def own_settings(env: Mapping[str, str]) -> dict[str, str]:
    """Clew's own variables."""
    return {name: value for name, value in env.items() if name.startswith(OWN_VARIABLES)}


def _not_ours(env: Mapping[str, str]) -> dict[str, str]:
    """All others: whoever starts it may have some of a project's, and it serves all of them."""
    return {name: value for name, value in env.items() if not name.startswith(OWN_VARIABLES)}
