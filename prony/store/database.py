"""A database of Prony: opening, creation and transactions."""

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
"""First pause before reconnecting; doubled each time."""


class Database:
    """A file or server with Prony's tables."""

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
        """A writing transaction. `alone`: excludes other `alone` writers (always so in SQLite), for decisions
        based on reads.
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
        """Runs `work` in a writing transaction. After a lost connection it is repeated, possibly after a
        commit, so `work` must be idempotent. Raises StoreError for database errors except IntegrityError.
        `patience_s`: longest retry [RECONNECT_S].
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
        """Returns the space of deleted rows to the disk (SQLite)."""
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
            if version == schema.SCHEMA_VERSION:
                return
            with self.writing(alone=True) as connection:
                if self._schema_version(connection) is None:  # another process may have created it
                    if self._location.sqlite:
                        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
                    schema.create(connection, f"prony {__version__}")

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
