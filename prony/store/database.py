"""A database of Prony's: opens, creates or migrates it, and its transactions. Must not know experiments and
trials.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import SQLAlchemyError

from prony import __version__
from prony.errors import StoreError
from prony.store import schema
from prony.store.faults import explained
from prony.store.location import APPLICATION_ID, WRITES, Location, locate, sqlite_tables


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
    def writing(self) -> Iterator[Connection]:
        """A transaction that holds the write lock from its start."""
        with self._location.engine.connect() as connection:
            chosen = connection.execution_options(**{WRITES: True})
            with chosen.begin():
                yield chosen

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read-only transaction; database errors become StoreError."""
        with self.faults(), self._location.engine.begin() as connection:
            yield connection

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Turns database errors into StoreError, in one sentence."""
        try:
            yield
        except SQLAlchemyError as error:
            raise explained(error, self.where) from None

    def _prepare(self) -> None:
        if self._location.sqlite and not self._location.marked:
            self._refuse_foreign_file()
        with self.faults():
            with self._location.engine.connect() as connection:
                found = self._schema_version(connection)
            if found == schema.SCHEMA_VERSION:
                return
            with self.writing() as connection:
                schema.lock(connection)
                found = self._schema_version(connection)  # another program may have been faster
                if found is None:
                    if self._location.sqlite:
                        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
                    schema.create(connection, f"prony {__version__}")
                elif found < schema.SCHEMA_VERSION:
                    schema.migrate(connection, found)

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
        """The schema version; None when there are no tables yet. A newer or unclear one raises StoreError."""
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
        if found > schema.SCHEMA_VERSION:
            raise StoreError(
                f"{self.where} was written by a newer Prony (schema {found}; this one knows "
                f"{schema.SCHEMA_VERSION}); update Prony, or name another file with --db."
            )
        return found
