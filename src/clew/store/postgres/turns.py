"""Taking turns on a branch, by locks of the server, which ends the turn of a process that dies."""

from contextlib import suppress
from threading import Lock

import psycopg

from clew.store.postgres.connections import Connections
from clew.store.postgres.database import PostgresDatabase
from clew.store.waiting import Wait


class TurnConnection:
    """The connection on which turns are held that nobody else wanted; for one thread.

    Who must wait does so on a connection of its own: on this one, it would hold up everybody.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._db: PostgresDatabase | None = None

    def get(self) -> PostgresDatabase:
        """It, or a new one where the server has gone from it."""
        if self._db is None or not (self._db.usable() and self._db.silent()):
            self.close()
            self._db = self._connections.take()
        return self._db

    def close(self) -> None:
        """Whatever is held here is held no more."""
        if self._db is not None:
            self._connections.drop(self._db)
            self._db = None


class BranchTurn:
    """One caller's turn on a branch. Who is cancelled while a thread asks for it does not hear the answer."""

    def __init__(self, connections: Connections, branch: str) -> None:
        self._connections = connections
        self._branch = branch
        self._guard = Lock()
        self._over = False
        self._asked: PostgresDatabase | None = None  # in line, here
        self._held: PostgresDatabase | None = None
        self._own: PostgresDatabase | None = None

    def at_once(self, shared: TurnConnection) -> bool:
        """Take it, if nobody has it and nobody waits for it."""
        db = shared.get()
        row = db.ask("try_alone", branch=self._branch).fetchone()
        self._held = db if row and row[0] else None
        return self._held is not None

    def in_line(self, wait: Wait) -> None:
        """Wait for it, after those who came before, for as long as the caller would; then go on without it."""
        db = self._connections.take()
        try:
            with self._guard:
                if self._over:
                    return
                self._asked = db
            came = False
            try:
                with suppress(psycopg.errors.LockNotAvailable), db.hurried(wait):
                    db.ask("wait_alone", branch=self._branch)
                    came = True
            finally:
                with self._guard:
                    self._asked = None
            with self._guard:
                if came and not self._over:  # else whoever has it may hang, and a conflict is only an inconvenience
                    self._held = self._own = db
        finally:
            if self._own is None:
                self._connections.drop(db)

    def end(self) -> None:
        """Let the next one have it, whether or not this one had it."""
        with self._guard:
            self._over = True
            if self._asked:
                self._asked.connection.cancel_safe()
        try:
            if self._held:
                self._held.ask("end_alone", branch=self._branch)
        finally:
            if self._own:
                self._connections.give(self._own)
