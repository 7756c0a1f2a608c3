"""A database of Prony's: opens, creates or migrates it, and its transactions."""

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
from prony.store.faults import explained, is_lost
from prony.store.location import APPLICATION_ID, WRITES, Location, locate, sqlite_tables

T = TypeVar("T")

FIRST_PAUSE_S = 0.1
"""Before a lost connection is opened again; twice as long each time."""


class Database:
    """A file or server with Prony's tables."""

    def __init__(self, location: Location) -> None:
        self._location = location

    @classmethod
    def open(cls, target: str | Path | None) -> Self:
        """Create the tables where there are none. Raises StoreError, changing nothing, for a database that is
        not Prony's.
        """
        database = cls(locate(target))
        database._prepare()
        return database

    @property
    def where(self) -> str:
        """The file or URL, without a password."""
        return self._location.where

    def close(self) -> None:
        """Close all connections."""
        self._location.engine.dispose()

    @contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[Connection]:
        """A transaction that writes. `alone`: nobody else writes what depends on what they read until it
        ends, as always in SQLite; for a transaction that decides by what it finds.
        """
        with self._location.engine.connect() as connection:
            chosen = connection.execution_options(**{WRITES: True})
            with chosen.begin():
                if alone:
                    schema.lock(chosen, location.BUSY_S)
                yield chosen

    def write(
        self, work: Callable[[Connection], T], *, alone: bool = False, patience_s: float | None = None
    ) -> T:
        """`work` in a transaction that writes, and its result. Where the connection to a server is lost it is
        done again, and it may have been committed before: `work` must come to the same when it is repeated.
        Database errors become StoreError, but for IntegrityError. `patience_s`: for how long it is tried
        again [RECONNECT_S].
        """

        def once() -> T:
            with self.writing(alone=alone) as connection:
                return work(connection)

        return self._again_if_lost(once, patience_s)

    def read(self, work: Callable[[Connection], T]) -> T:
        """`work` in a transaction that only reads, and its result; done again if the connection is lost."""

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
        """Turns database errors into StoreError, in one sentence; not an IntegrityError, which says something
        about the data and not about the database.
        """
        try:
            yield
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise explained(error, self.where) from None

    def shrink(self) -> None:
        """Give the room of deleted rows back to the disk; a server does so by itself."""
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
                found = self._schema_version(connection)
            if found == schema.SCHEMA_VERSION:
                return
            with self.writing(alone=True) as connection:
                if self._schema_version(connection) is None:  # another program may have been faster
                    if self._location.sqlite:
                        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
                    schema.create(connection, f"prony {__version__}")

    def _refuse_foreign_file(self) -> None:
        try:
            tables = sqlite_tables(self.where)
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.where} cannot be read as a database ({error}) and was left alone; "
                "name another file with --db."
            ) from None
        if tables and schema.about.name not in tables:
            raise StoreError(
                f"{self.where} is a database of another program (it has the table '{tables[0]}') "
                "and was left alone; name another file with --db."
            )

    def _schema_version(self, connection: Connection) -> int | None:
        """The schema version; None when there are no tables yet. Another or unclear one raises StoreError."""
        tables = set(inspect(connection).get_table_names())
        if schema.about.name not in tables:
            taken = tables & set(schema.metadata.tables)
            if taken:
                raise StoreError(
                    f"{self.where} already has a table '{min(taken)}' that is not Prony's; "
                    "give Prony a database of its own."
                )
            return None
        found = schema.version_of(connection)
        if found is None:
            raise StoreError(f"{self.where} does not say which version of the schema it has; it is damaged.")
        if found != schema.SCHEMA_VERSION:
            age = "a newer" if found > schema.SCHEMA_VERSION else "an older"
            raise StoreError(
                f"{self.where} was written by {age} Prony (schema {found}; this one knows "
                f"{schema.SCHEMA_VERSION}); use that version, or name another file with --db."
            )
        return found
