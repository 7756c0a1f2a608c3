"""Location of the results. A foreign file is recognised by its header and never opened for writing."""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from prony.errors import StoreError

BUSY_S = 15.0
AGAIN_S = 0.02

RECONNECT_S = 60.0
"""Longest retry of a lost connection: a server's restart takes seconds."""

CONNECT_S = 10
DEAD_S = 30
"""Time without an acknowledgement after which a connection is lost."""

IN_MEMORY = ":memory:"
NOT_IN_MEMORY = "Results are not kept in memory; name a file for the SQLite database."

WRITES = "prony_writes"
"""Execution option of connections that take SQLite's write lock at the start instead of failing midway."""

APPLICATION_ID = 0x50524F4E
"""`PRON` in the header of Prony's files: identifies them without opening them as a database."""

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_APPLICATION_ID_AT = 68  # https://sqlite.org/fileformat2.html, "The Database Header"


@dataclass(frozen=True, slots=True)
class Location:
    where: str
    engine: Engine
    sqlite: bool
    writable: bool = True
    marked: bool = False


def default_path() -> str:
    """`$PRONY_DB` (a file or SQLAlchemy URL), else results.db in the user's data folder."""
    named = os.environ.get("PRONY_DB")
    if named:
        return named
    data = os.environ.get("XDG_DATA_HOME")
    folder = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local/share"
    return str(folder / "prony" / "results.db")


def locate(target: str | Path | None) -> Location:
    """Connects to a file or SQLAlchemy URL (default: `default_path()`). Raises StoreError."""
    text = str(target) if target is not None else default_path()
    if text == IN_MEMORY:
        raise StoreError(NOT_IN_MEMORY)
    if "://" not in text:
        return _sqlite(Path(text).expanduser())
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # ValueError: a port that is no number
        raise StoreError(
            f"'{_without_password(text)}' is not a database URL; write it like "
            "postgresql://user@host/name or name a file."
        ) from None
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == IN_MEMORY:
            raise StoreError(NOT_IN_MEMORY)
        return _sqlite(Path(url.database))
    return _server(url)


def _without_password(text: str) -> str:
    head, at, tail = text.rpartition("@")
    return f"{head.partition('://')[0]}://...@{tail}" if at else text


def _server(url: URL) -> Location:
    where = url.render_as_string(hide_password=True)
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    try:
        engine = create_engine(url, pool_pre_ping=True, connect_args=_patience(url))
    except NoSuchModuleError:
        raise StoreError(
            f"'{url.drivername}' is not a supported database; use a file (SQLite) or postgresql://."
        ) from None
    except ModuleNotFoundError as missing:
        package = "prony[postgresql]" if missing.name == "psycopg" else missing.name
        raise StoreError(
            f"{where} needs the Python package '{missing.name}', which is not installed; "
            f"install it into Prony's environment: pip install '{package}'."
        ) from None
    return Location(where, engine, sqlite=False)


def _patience(url: URL) -> dict[str, Any]:
    """Timeouts for libpq, which has none, unless the URL sets them."""
    if url.get_backend_name() != "postgresql":
        return {}
    wanted = {"connect_timeout": CONNECT_S, "keepalives_idle": DEAD_S, "tcp_user_timeout": DEAD_S * 1000}
    return {name: value for name, value in wanted.items() if name not in url.query}


def _sqlite(path: Path) -> Location:
    path = path.absolute()
    header = _read_header(path)
    fresh = not header
    if fresh:
        _make_folder(path.parent)
    writable = _may_write(path.parent) and _may_write(path)
    if fresh and not writable:
        raise StoreError(
            f"Results cannot be stored in {path}: its folder is read-only; name another file with --db."
        )
    if fresh and not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # others need not read what is measured
    engine = create_engine("sqlite://", creator=lambda: _connect(path, writable), poolclass=NullPool)
    event.listen(engine, "begin", _begin)
    marked = header[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4] == APPLICATION_ID.to_bytes(4, "big")
    return Location(str(path), engine, sqlite=True, writable=writable, marked=marked)


def _may_write(path: Path) -> bool:
    return not path.exists() or os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _read_header(path: Path) -> bytes:
    """The file's header; empty without a file. Raises StoreError if unreadable or not SQLite."""
    try:
        if path.is_fifo() or path.is_char_device():
            raise StoreError(f"{path} is a pipe or a device; name a file with --db.")
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return b""
    except NotADirectoryError:
        raise StoreError(f"{path} cannot be a file: {path.parent} is not a folder.") from None
    except IsADirectoryError:
        raise StoreError(f"{path} is a folder; name a file in it, such as {path / 'results.db'}.") from None
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read ({error.strerror}); allow it, or name another file with --db."
        ) from None
    if head and not head.startswith(_MAGIC):
        raise StoreError(
            f"{path} is not a database of results (it does not start like an SQLite file) "
            "and was not changed; name another file with --db."
        )
    return head


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The folder {folder} cannot be created ({error.strerror}); name a file elsewhere with --db."
        ) from None


def _connect(path: Path, writable: bool) -> sqlite3.Connection:
    """A connection in autocommit mode: SQLAlchemy's begin event starts transactions."""
    mode = "mode=rwc" if writable else _read_only(path)
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{mode}", BUSY_S, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA synchronous=FULL")
        if writable:
            _write_ahead(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _read_only(path: Path) -> str:
    # Without write permission SQLite cannot create its shared-memory file, but nobody else writes either.
    return "mode=ro" if Path(f"{path}-wal").exists() else "mode=ro&immutable=1"


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Sets the journal mode, retrying while another process does: SQLite does not wait here."""
    until = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as fault:
            if not fault.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > until:
                raise
            time.sleep(AGAIN_S)
        else:
            return


def _begin(connection: Connection) -> None:
    options: dict[str, Any] = dict(connection.get_execution_options())
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(WRITES) else "BEGIN")


def sqlite_tables(path: str) -> list[str] | None:
    """The tables of an SQLite file, read-only; None when absent or empty."""
    if not Path(path).exists() or Path(path).stat().st_size == 0:
        return None
    connection = sqlite3.connect(f"file:{quote(path)}?{_read_only(Path(path))}", uri=True, timeout=BUSY_S)
    try:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    finally:
        connection.close()
    return [str(row[0]) for row in rows if not str(row[0]).startswith("sqlite_")]
