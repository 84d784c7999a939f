"""Opening a store on a server: foreign and newer ones are refused untouched, older ones migrated, new ones made."""

import secrets
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from clew.errors import ForeignFile, NotFound, StoreError
from clew.store.addresses import hidden
from clew.store.sqlite.opening import APPLICATION, migrations, refuse_newer

OURS = b"clew"

# Unless the URL says otherwise: a server that went away is noticed within a minute.
DEFAULTS = {
    "connect_timeout": "10",
    "fallback_application_name": "clew",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}

SETTINGS = """
select set_config('search_path', %s, false),
       set_config('join_collapse_limit', '1', false),  -- as `cross join` has it: the list given leads
       set_config('enable_mergejoin', 'off', false),   -- for a few branches it would read events of thousands of others
       set_config('jit', 'off', false),                -- our statements are short, and many
       set_config('synchronous_commit',
                  case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end,
                  false)
"""


class Address:
    """Where a store is, from a URL; what is shown of it has no password."""

    def __init__(self, url: str, schema: str) -> None:
        try:
            given = conninfo_to_dict(url)
        except psycopg.Error:
            # Not what the driver says of it: that quotes the URL, and with it the password.
            raise StoreError(
                "the URL of the store is invalid; expected postgresql://user:password@host:5432/database, "
                "with special characters written like %40"
            ) from None
        self.schema = schema
        self.parameters: dict[str, Any] = {**DEFAULTS, **given}
        self.password = str(given.get("password") or "")
        self.place = hidden(url)

    def clean(self, error: psycopg.Error) -> str:
        """What an error says, in one line and without the password."""
        text = " ".join((error.diag.message_primary or str(error)).split()) or type(error).__name__
        return text.replace(self.password, "***") if self.password else text


class StoreConnection(psycopg.Connection[Any]):
    """One that remembers whose it is, and how long it waits for a lock, so that it need not be told again."""

    place = ""
    patience = -1.0  # seconds; nobody said yet


def connect(address: Address) -> StoreConnection:
    """A connection that finds our tables, and whose commits are on disk when they return."""
    connection = StoreConnection.connect(**address.parameters, autocommit=True)
    try:
        configure(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


def configure(connection: StoreConnection, address: Address) -> None:
    """Let a connection be such a one."""
    connection.place = address.place
    connection.execute(SETTINGS, [Identifier(address.schema).as_string(connection)])


def prepare(connection: psycopg.Connection[Any], address: Address, create: bool) -> None:
    """Make or migrate our tables, or check that they are ours."""
    scripts = migrations("postgres")
    version = _version(connection, address)
    if version == 0 and not create:
        raise NotFound(f"{address.place}: no store found; `clew demo` creates one, or use --store")
    if version == len(scripts):
        return
    with connection.transaction():
        # Whoever opens it at the same moment waits here, and then finds it done.
        connection.execute("select pg_advisory_xact_lock(%s, hashtext(%s))", [APPLICATION, address.schema])
        version = _version(connection, address)
        # Not `if not exists`: that asks for the right to make one even where it is there.
        if connection.execute("select 1 from pg_namespace where nspname = %s", [address.schema]).fetchone() is None:
            connection.execute(SQL("create schema {}").format(Identifier(address.schema)))
        for script in scripts[version:]:
            connection.execute(script)
        if version == 0:
            new = {"application": OURS, "secret": secrets.token_bytes(32), "version": b""}
            for key, value in new.items():
                connection.execute("insert into meta (key, value) values (%s, %s)", [key, value])
        connection.execute("update meta set value = %s where key = 'version'", [b"%d" % len(scripts)])


def _version(connection: psycopg.Connection[Any], address: Address) -> int:
    """How many migrations our tables have seen; none, if there are none."""
    rows = connection.execute(
        "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = %s",
        [address.schema],
    ).fetchall()
    if not rows:
        return 0
    found: dict[str, bytes] = {}
    try:
        with connection.transaction():
            found = dict(connection.execute("select key, value from meta").fetchall())
    except psycopg.errors.ProgrammingError:  # no such table or column: somebody else's
        pass
    if found.get("application") != OURS:
        raise ForeignFile(
            f"{address.place}: the schema {address.schema} has tables of another program; choose another database"
        )
    version = int(found["version"])
    refuse_newer(address.place, version, "postgres")
    return version
