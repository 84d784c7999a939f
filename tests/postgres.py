"""A PostgreSQL server for tests: this machine's binaries, a temporary folder, a socket that nobody else can use."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

import psycopg

PLACES = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "opt/homebrew/opt/postgresql*/bin",
    "usr/local/opt/postgresql*/bin",
)
MISSING = "PostgreSQL is not on this machine: its store was NOT tested"

OTHERS = """select pg_terminate_backend(pid, 60000) from pg_stat_activity
    where pid != pg_backend_pid() and backend_type = 'client backend' and datname = current_database()"""
# All that is not in rows of tables, and what a store says of itself; to empty a table changes none of it.
SHAPE = """select md5(string_agg(said, ' ' order by said)) from (
    select concat_ws(' ', attrelid, attnum, attname, atttypid, attstattarget) from pg_attribute where attrelid >= 16384
    union all select f::text from pg_proc f where oid >= 16384
    union all select t::text from pg_trigger t where oid >= 16384
    union all select s::text from pg_db_role_setting s
    union all select m::text from clew.meta m where key in ('application', 'secret', 'version')) as everything(said)"""
COUNTED = "delete from clew.meta where key not in ('application', 'secret', 'version')"
FILLED = """select string_agg(oid::regclass::text, ', ') from pg_class
    where relnamespace = 'clew'::regnamespace and relkind = 'r' and relname != 'meta' and pg_relation_size(oid) > 0"""


def binaries() -> Path | None:
    """The folder with the newest server of this machine; on a Debian that is ours to change, one is installed."""
    if os.name != "posix":
        return None
    found = _found()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        import fcntl

        with (Path(tempfile.gettempdir()) / "clew-tests-install").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)  # one worker at a time
            installed = _found() is not None or _install()
        found = _found()
        assert found or not installed, "PostgreSQL was installed, and is not where it was looked for"
    return found


def _found() -> Path | None:
    found = [folder for place in PLACES for folder in Path("/").glob(place) if (folder / "initdb").exists()]
    if known := shutil.which("initdb"):
        found.append(Path(known).resolve().parent)
    return max(found, key=lambda folder: [int(n) for n in re.findall(r"\d+", str(folder))], default=None)


def _install() -> bool:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    hasty = "apt-get -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=20".split()
    subprocess.run([*hasty, "update"], env=env, capture_output=True, check=False)
    install = [*hasty, "install", "-y", "--no-install-recommends", "postgresql"]
    return subprocess.run(install, env=env, capture_output=True, check=False).returncode == 0


class Server:
    """A server of one's own."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="clew-pg-"))  # a short path: it has a socket in it
        self.made = 0
        self.spare: list[str] = []
        self.user = _somebody() if os.geteuid() == 0 else None
        if self.user is not None:
            os.chown(self.folder, self.user, -1)
        self.process = self._begin(
            "initdb", "-D", "data", "-U", "clew", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"
        )
        assert self.process.wait() == 0, self.told()

    def start(self, *settings: str) -> None:
        here = ("listen_addresses=", f"unix_socket_directories={self.folder}", "max_connections=200", *settings)
        self.process = self._begin("postgres", "-D", "data", *(part for s in here for part in ("-c", s)))
        while True:
            assert self.process.poll() is None, self.told()
            try:
                psycopg.connect(self.url()).close()
                return
            except psycopg.OperationalError:  # not yet
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Close all connections and stop; with SIGQUIT without finishing anything, as in a crash."""
        self.process.send_signal(how)
        self.process.wait()

    def remove(self) -> None:
        if self.process.poll() is None:
            self.stop(signal.SIGQUIT)
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

    @contextmanager
    def lent(self) -> Iterator[str]:
        """The URL of a database with an empty store, made of `template`. Where nothing but rows came into it, it is
        emptied and lent again: to make and use a new one takes a server three times as long."""
        name = self.spare.pop() if self.spare else self.database("template")
        yield self.url(name)
        if self._emptied(name):
            self.spare.append(name)
        else:
            self.ask(f"drop database if exists {name} with (force)")

    def _emptied(self, name: str) -> bool:
        """Whether this database is now as it was made."""
        with suppress(psycopg.Error), psycopg.connect(self.url(name), autocommit=True) as db:
            db.execute(OTHERS)
            if db.execute(SHAPE).fetchall() == self._shape:
                db.execute(COUNTED)
                [(filled,)] = db.execute(FILLED).fetchall()
                if filled:
                    db.execute(f"truncate {filled} restart identity")
                return True
        return False

    @cached_property
    def _shape(self) -> list[tuple[object, ...]]:
        return self.ask(SHAPE, "template")

    def told(self) -> str:
        return (self.folder / "log").read_text()

    def _begin(self, program: str, *args: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(
                [self.programs / program, *args],
                cwd=self.folder,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                user=self.user,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # ctrl-c is for the tests, which then stop it
            )


def _somebody() -> int:
    """Who runs the server where root runs the tests: it refuses to be run by root."""
    import pwd

    return pwd.getpwnam("nobody").pw_uid
