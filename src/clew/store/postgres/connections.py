"""Connections to a server, kept by psycopg's pool for whoever comes next."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from clew.store.postgres.database import PostgresDatabase
from clew.store.postgres.opening import Address, StoreConnection, configure, connect

SECONDS = 10.0  # that a connection is waited for
GLANCE = 0.5  # seconds after which it is asked again whether there can be one

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
        end = monotonic() + SECONDS
        while True:
            self._expect_one()
            try:
                db = PostgresDatabase(self._pool.getconn(GLANCE))
            except PoolTimeout:
                if monotonic() > end:
                    raise
                continue
            if db.silent():
                return db
            self.drop(db)

    def _expect_one(self) -> None:
        """Raise what the server says where none can be had."""
        if self._pool.get_stats()["pool_available"]:
            return
        try:
            # The pool makes one in the background, and does not tell why it cannot: whoever waits would time out.
            connect(self._address).close()
        except psycopg.OperationalError:
            # A server may have as many as it takes: then one of ours comes back.
            if not self._pool.get_stats()["pool_size"]:
                raise

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
