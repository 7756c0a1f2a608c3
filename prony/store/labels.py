"""Tags and notes of experiments."""

from __future__ import annotations

import getpass
import re
import socket
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from prony import redaction
from prony.errors import UsageError
from prony.store import schema
from prony.store.columns import column_time
from prony.store.ids import looks_like_id
from prony.store.rows import Note, Unreadable

LATEST = "latest"
MOST_NOTE_CHARACTERS = 10_000
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}")


def checked_tag(name: str) -> str:
    """A valid tag. Raises UsageError for an invalid or ambiguous name."""
    if not _TAG.fullmatch(name):
        raise UsageError(
            f"'{name[:80]}' is not a valid tag; expected 1 to 64 letters, digits and . _ / -, "
            "beginning with a letter or digit"
        )
    if name.lower() == LATEST or looks_like_id(name):
        raise UsageError(f"'{name}' cannot be a tag, as it names an experiment; choose another name")
    return name


def checked_note(text: str) -> str:
    text = text.strip()
    if not text:
        raise UsageError("the note is empty; give its text")
    if len(text) > MOST_NOTE_CHARACTERS:
        raise UsageError(f"the note has {len(text):,} characters; expected at most {MOST_NOTE_CHARACTERS:,}")
    return text


def who() -> str:
    """user@host of this process; `unknown` without a user name."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def add_tag(connection: Connection, experiment_id: str, name: str, *, only: bool) -> None:
    """Tags an experiment (idempotent); with `only`, others lose the tag."""
    others = schema.tags.c.experiment_id != experiment_id
    if only:
        connection.execute(delete(schema.tags).where(schema.tags.c.name == name, others))
    mine = (schema.tags.c.name == name, schema.tags.c.experiment_id == experiment_id)
    if connection.execute(select(schema.tags.c.name).where(*mine)).first() is None:
        values = {"name": name, "experiment_id": experiment_id, "made": _now(), "made_by": who()}
        connection.execute(insert(schema.tags).values(**values))


def remove_tag(connection: Connection, experiment_id: str, name: str) -> bool:
    mine = (schema.tags.c.name == name, schema.tags.c.experiment_id == experiment_id)
    return connection.execute(delete(schema.tags).where(*mine)).rowcount > 0


def tags(connection: Connection) -> dict[str, int]:
    query = select(schema.tags.c.name, func.count()).group_by(schema.tags.c.name).order_by(schema.tags.c.name)
    return {str(row[0]): int(row[1]) for row in connection.execute(query)}


def newest_tagged(connection: Connection, name: str) -> str | None:
    query = (
        select(schema.experiments.c.id)
        .join(schema.tags)
        .where(schema.tags.c.name == name)
        .order_by(schema.experiments.c.created.desc(), schema.experiments.c.id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()


def new_note(experiment_id: str, text: str) -> dict[str, Any]:
    return {"experiment_id": experiment_id, "made": _now(), "made_by": who(), "text": text}


def add_notes(connection: Connection, notes: tuple[Mapping[str, Any], ...]) -> None:
    """Adds missing notes, identified by experiment, time and author."""
    for note in notes:
        same = (schema.notes.c[name] == note[name] for name in ("experiment_id", "made", "made_by"))
        if connection.execute(select(schema.notes.c.id).where(*same)).first() is None:
            connection.execute(insert(schema.notes).values(**note))


def tags_of(connection: Connection, ids: Sequence[str]) -> dict[str, list[str]]:
    query = select(schema.tags).where(schema.tags.c.experiment_id.in_(ids))
    by_experiment: dict[str, list[str]] = defaultdict(list)
    for row in connection.execute(query.order_by(schema.tags.c.name)):
        by_experiment[row.experiment_id].append(row.name)
    return by_experiment


def notes_of(
    connection: Connection, ids: Sequence[str], unreadable: list[Unreadable]
) -> dict[str, list[Note]]:
    query = select(schema.notes).where(schema.notes.c.experiment_id.in_(ids))
    by_experiment: dict[str, list[Note]] = defaultdict(list)
    for row in connection.execute(query.order_by(schema.notes.c.id)):
        try:
            moment = column_time("made", row.made)
        except ValueError as fault:
            sentence = f"a note on experiment {row.experiment_id} cannot be read: {fault}"
            unreadable.append(Unreadable(row.experiment_id, sentence, whole=False))
        else:
            by_experiment[row.experiment_id].append(Note(moment, row.made_by, redaction.text(row.text)))
    return by_experiment


def _now() -> str:
    return datetime.now(UTC).isoformat()
