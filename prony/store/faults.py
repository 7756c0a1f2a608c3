"""A sentence for every database error."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from prony.errors import StoreError

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
