"""A database of Prony: opening, creation, transactions, and a sentence for every error."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from prony import __version__
from prony.errors import StoreError
from prony.store import location, schema
from prony.store.location import APPLICATION_ID, WRITES, Location, locate, sqlite_tables

T = TypeVar("T")

FIRST_PAUSE_S = 0.1


_SQLITE = {
    "SQLITE_FULL": "the disk is full; make room and try again",
    "SQLITE_BUSY": "another program keeps it locked; end that program or try again",
    "SQLITE_LOCKED": "another program keeps it locked; end that program or try again",
    "SQLITE_READONLY": (
        "it may only be read; allow writing to the file and its folder, or name another with --db"
    ),
    "SQLITE_CANTOPEN": "it cannot be opened; check that its folder exists and may be written",
    "SQLITE_PERM": "permission is denied; allow it, or name another file with --db",
    "SQLITE_NOTADB": "it is not a database; name another file with --db",
    "SQLITE_CORRUPT": "it is damaged; put it aside (`sqlite3 FILE .recover` may save most of it)",
    "SQLITE_IOERR": "reading or writing it failed; check the disk and its free space",
    "SQLITE_TOOBIG": "one record is larger than the database takes",
}
"""By prefix of SQLite's error name (sqlite_errorname); the longest prefix wins."""

_SQLSTATE = {
    "53100": "the server's disk is full; make room and try again",
    "25006": "the server is read-only; use the primary",
    "28": "the server refuses this user or password",
    "3D000": "the server has no database of this name; create it first",
    "42501": "this user may not write there; grant it the rights",
    "08": "the connection to the server was lost; try again when it is back",
    "57P": "the server was shut down or ended the connection; try again when it is back",
    "55P03": "another program keeps it locked; end that program or try again",
    "53300": "the server has no connection left; end other programs or raise max_connections",
}
"""By prefix of the SQLSTATE (PostgreSQL)."""


class Database:
    def __init__(self, location: Location) -> None:
        self._location = location

    @classmethod
    def open(cls, target: str | Path | None) -> Self:
        """Opens a database, creating its tables. Raises StoreError, changing nothing, for a foreign one."""
        database = cls(locate(target))
        database._prepare()
        return database

    @property
    def where(self) -> str:
        return self._location.where

    def close(self) -> None:
        self._location.engine.dispose()

    @contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[Connection]:
        """A writing transaction. `alone`: excludes other `alone` writers, for decisions based on reads."""
        with self._location.engine.connect() as connection:
            chosen = connection.execution_options(**{WRITES: True})
            with chosen.begin():
                if alone:
                    schema.lock(chosen, location.BUSY_S)
                yield chosen

    def write(
        self, work: Callable[[Connection], T], *, alone: bool = False, patience_s: float | None = None
    ) -> T:
        """Runs `work` in a writing transaction. After a lost connection it is repeated for `patience_s`,
        possibly after a commit, so `work` must be idempotent. Raises StoreError and IntegrityError.
        """

        def once() -> T:
            with self.writing(alone=alone) as connection:
                return work(connection)

        return self._again_if_lost(once, patience_s)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` in a reading transaction, repeated after a lost connection."""

        def once() -> T:
            with self._location.engine.begin() as connection:
                return work(connection)

        return self._again_if_lost(once)

    def _again_if_lost(self, once: Callable[[], T], patience_s: float | None = None) -> T:
        until = time.monotonic() + (location.RECONNECT_S if patience_s is None else patience_s)
        pause_s = FIRST_PAUSE_S
        with self.faults():
            while True:
                try:
                    return once()
                except DBAPIError as fault:
                    if self._location.sqlite or not is_lost(fault) or time.monotonic() + pause_s > until:
                        raise
                time.sleep(pause_s)
                pause_s *= 2

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Turns database errors into StoreError, except IntegrityError, which is about the data."""
        try:
            yield
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise explained(error, self.where) from None

    def shrink(self) -> None:
        if self._location.sqlite:
            with self.faults(), self._location.engine.connect() as connection:
                raw = connection.connection.driver_connection
                assert isinstance(raw, sqlite3.Connection)
                try:
                    raw.execute("VACUUM")
                    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                except sqlite3.Error as error:
                    raise explained(OperationalError("VACUUM", None, error), self.where) from None

    def _prepare(self) -> None:
        if self._location.sqlite and not self._location.marked:
            self._refuse_foreign_file()
        with self.faults():
            with self._location.engine.connect() as connection:
                version = self._schema_version(connection)
                whole = schema.answers.name in inspect(connection).get_table_names()
            if version == schema.SCHEMA_VERSION and whole:
                return
            with self.writing(alone=True) as connection:
                if self._schema_version(connection) is None:  # another process may have created it
                    if self._location.sqlite:
                        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
                    schema.create(connection, f"prony {__version__}")
                else:
                    schema.complete(connection)

    def _refuse_foreign_file(self) -> None:
        try:
            tables = sqlite_tables(self.where)
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.where} cannot be read as a database ({error}) and was not changed; "
                "name another file with --db."
            ) from None
        if tables and schema.about.name not in tables:
            raise StoreError(
                f"{self.where} is a database of another program (it has the table '{tables[0]}') "
                "and was not changed; name another file with --db."
            )

    def _schema_version(self, connection: Connection) -> int | None:
        tables = set(inspect(connection).get_table_names())
        if schema.about.name not in tables:
            taken = tables & set(schema.metadata.tables)
            if taken:
                raise StoreError(
                    f"{self.where} already has a table '{min(taken)}' that is not Prony's; "
                    "use a separate database for Prony."
                )
            return None
        version = schema.version_of(connection)
        if version is None:
            raise StoreError(f"{self.where} has no schema version; it is damaged.")
        if version != schema.SCHEMA_VERSION:
            age = "a newer" if version > schema.SCHEMA_VERSION else "an older"
            raise StoreError(
                f"{self.where} was written by {age} Prony (schema {version}; this one knows "
                f"{schema.SCHEMA_VERSION}); use that version, or name another file with --db."
            )
        return version


def is_lost(error: DBAPIError) -> bool:
    """Whether the connection to the server was lost or not opened; libpq may give no SQLSTATE then."""
    state = str(getattr(error.orig, "sqlstate", "") or "")
    if not state:
        return isinstance(error, OperationalError)
    return state.startswith(("08", "57P"))


def explained(error: SQLAlchemyError, where: str) -> StoreError:
    """The error as a sentence with the database and a remedy."""
    original = error.orig if isinstance(error, DBAPIError) else None
    name = str(getattr(original, "sqlite_errorname", "") or "")
    state = str(getattr(original, "sqlstate", "") or "")
    for table, code in ((_SQLITE, name), (_SQLSTATE, state)):
        matches = [beginning for beginning in table if code.startswith(beginning)] if code else []
        if matches:
            return StoreError(f"The results in {where} cannot be used: {table[max(matches, key=len)]}.")
    text = " ".join(str(original or error).split()).rstrip(".") or type(error).__name__
    return StoreError(f"The results in {where} cannot be used: {text}.")
