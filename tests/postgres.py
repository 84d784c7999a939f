"""A PostgreSQL server for tests: this machine's binaries, a temporary folder, a socket that nobody else can use."""

import fcntl
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg

PLACES = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "opt/homebrew/opt/postgresql*/bin",
    "usr/local/opt/postgresql*/bin",
)
MISSING = "PostgreSQL is not on this machine: its store was NOT tested"


def binaries() -> Path | None:
    """The folder with the newest server of this machine; where it can be installed, it is."""
    found = _found()
    if found is None and installable():
        with (Path(tempfile.gettempdir()) / "clew-tests-install").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)  # one worker at a time
            if _found() is None:
                _install()
        found = _found()
    return found


def installable() -> bool:
    """Whether this machine has a way to get a server that needs nobody's help."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _found() -> Path | None:
    found = [folder for place in PLACES for folder in Path("/").glob(place) if (folder / "initdb").exists()]
    if known := shutil.which("initdb"):
        found.append(Path(known).resolve().parent)
    return max(found, key=lambda folder: [int(n) for n in re.findall(r"\d+", str(folder))], default=None)


def _install() -> None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ("update", "install -y --no-install-recommends postgresql"):
        subprocess.run(["apt-get", "-qq", *command.split()], env=env, capture_output=True, check=False)


class Server:
    """A server of one's own."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="clew-pg-"))  # a short path: it has a socket in it
        self.made = 0
        # It refuses to run as root, who may well run the tests.
        self.user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
        if self.user is not None:
            os.chown(self.folder, self.user, -1)
        self._run("initdb", "-D", "data", "-U", "clew", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

    def start(self, *settings: str) -> None:
        here = ("listen_addresses=", f"unix_socket_directories={self.folder}", "max_connections=200", *settings)
        self._run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", " ".join(f"-c {s}" for s in here), "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", "data", "-w", "-m", mode, "stop")

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://clew:sesame@/{database}?host={self.folder}"

    def ask(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as db:
            rows = db.execute(statement)
            return rows.fetchall() if rows.description else []

    def database(self, template: str = "template0") -> str:
        """The name of a new database."""
        self.made += 1
        self.ask(f"create database test{self.made} template {template}")
        return f"test{self.made}"

    def _run(self, program: str, *args: str) -> None:
        done = subprocess.run(
            [self.programs / program, *args],
            cwd=self.folder,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            user=self.user,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
