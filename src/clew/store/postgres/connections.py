"""Connections to a server, kept by psycopg's pool for whoever comes next."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from psycopg_pool import ConnectionPool

from clew.store.postgres.database import PostgresDatabase
from clew.store.postgres.opening import Address, StoreConnection, configure, connect

SECONDS = 10.0  # that a connection which is being made is waited for

# They warn of what our callers are told as errors; without a handler, Python would print that.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class Connections:
    """At most so many, made when needed, let go of when they lay idle for long."""

    def __init__(self, address: Address, most: int) -> None:
        self._address = address

        def prepare(connection: StoreConnection) -> None:
            configure(connection, address)

        self._pool = ConnectionPool(
            connection_class=StoreConnection,
            kwargs={**address.parameters, "autocommit": True},
            configure=prepare,
            min_size=0,
            max_size=most,
            timeout=SECONDS,
            reconnect_timeout=0,  # a server that is away is tried again by who needs it
            num_workers=1,
            name="clew",
            open=True,
        )

    @contextmanager
    def taken(self) -> Iterator[PostgresDatabase]:
        """One that nobody else uses meanwhile."""
        db = self.take()
        try:
            yield db
        finally:
            self.give(db)

    def take(self) -> PostgresDatabase:
        """One that nobody else uses, to be given back."""
        while True:
            if not self._pool.get_stats()["pool_available"]:
                # The pool makes one in the background, and does not tell why it cannot: whoever waits would time out.
                connect(self._address).close()
            db = PostgresDatabase(self._pool.getconn())
            if db.silent():
                return db
            self.drop(db)

    def give(self, db: PostgresDatabase) -> None:
        """Back to the pool; with one that broke go those that were made before it."""
        broken = db.connection.closed
        self._pool.putconn(db.connection)
        if broken:
            self._pool.drain()

    def drop(self, db: PostgresDatabase) -> None:
        """Close one that was taken: whatever it has locked is free then."""
        db.close()
        self._pool.putconn(db.connection)

    def close(self, wait: bool) -> None:
        """Let go of all of them."""
        with suppress(RuntimeError):  # a store may be collected in a thread of the pool, which cannot wait for itself
            self._pool.close(timeout=SECONDS if wait else 0)
