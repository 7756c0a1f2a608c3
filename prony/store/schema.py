"""The tables of the catalogue. JSON and times are text, records compressed bytes."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    select,
)

SCHEMA_VERSION = 3

RECORD_FORMAT = "json+zlib"

_LOCK = 0x50524F4E

metadata = MetaData()

about = Table(
    "prony_schema",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

experiments = Table(
    "experiments",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", Text, nullable=False),
    Column("created", String(40), nullable=False),
    Column("ended", String(40)),
    Column("status", String(16), nullable=False),
    Column("spec", Text, nullable=False),
    Column("fingerprint_key", String(32), nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("seed", String(24), nullable=False),
    Column("quick", Boolean, nullable=False),
    Column("prony_version", String(32), nullable=False),
    Column("owner", String(160), nullable=False),
    Index("experiments_by_time", "created"),
)
"""`created`, `ended`: ISO 8601 in UTC, so text order is time order. `owner`: the process that runs it."""

trials = Table(
    "trials",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("experiment_id", String(32), ForeignKey("experiments.id"), nullable=False),
    Column("server", String(128), nullable=False),
    Column("workload", String(128), nullable=False),
    Column("load_name", String(128), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("block", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("quick", Boolean, nullable=False),
    Column("started", String(40), nullable=False),
    Column("ended", String(40), nullable=False),
    Column("failure", Text),
    Column("fingerprint_key", String(32), nullable=False),
    Column("prony_version", String(32), nullable=False),
    Column("record_format", String(16), nullable=False),
    Column("record", LargeBinary, nullable=False),
    Index("trials_by_experiment", "experiment_id"),
    Index("trials_by_series", "server", "workload", "load_name"),
)
"""`record` holds the whole TrialRecord; other columns are for look-ups. Immutable."""

judgements = Table(
    "judgements",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("trial_id", String(64), ForeignKey("trials.id"), nullable=False),
    Column("made", String(40), nullable=False),
    Column("prony_version", String(32), nullable=False),
    Column("judgement", Text, nullable=False),
    Column("figures", Text, nullable=False),
    Column("conforms", Boolean, nullable=False),
    Index("judgements_by_trial", "trial_id"),
)

experiment_summaries = Table(
    "experiment_summaries",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("experiment_id", String(32), ForeignKey("experiments.id"), nullable=False, unique=True),
    Column("command", String(32), nullable=False),
    Column("hostname", Text, nullable=False),
    sqlite_autoincrement=True,
)
"""Derived from the other tables (prony.store.summaries). `number`: the order of storing."""

trial_summaries = Table(
    "trial_summaries",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("trial_id", String(64), ForeignKey("trials.id"), nullable=False, unique=True),
    Column("cell", Text, nullable=False),
    Column("plan_key", String(16), nullable=False),
    Column("bound_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("versions", Text, nullable=False),
    Column("build_key", Text),
    Column("figures", Text, nullable=False),
    Column("conforms", Boolean, nullable=False),
    sqlite_autoincrement=True,
)

answers = Table(
    "answers",
    metadata,
    Column("experiment_id", String(32), ForeignKey("experiments.id"), primary_key=True),
    Column("sentence", Text, nullable=False),
)
"""An experiment's main conclusion, for lists; written whenever it is shown, by its judgements then."""

tags = Table(
    "tags",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("experiment_id", String(32), ForeignKey("experiments.id"), primary_key=True),
    Column("made", String(40), nullable=False),
    Column("made_by", Text, nullable=False),
    Index("tags_by_experiment", "experiment_id"),
)

notes = Table(
    "notes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("experiment_id", String(32), ForeignKey("experiments.id"), nullable=False),
    Column("made", String(40), nullable=False),
    Column("made_by", Text, nullable=False),
    Column("text", Text, nullable=False),
    Index("notes_by_experiment", "experiment_id"),
)


def lock(connection: Connection, patience_s: float) -> None:
    """Excludes other `alone` writers until the transaction ends (SQLite always does)."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(patience_s * 1000)}")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")


def create(connection: Connection, created_by: str) -> None:
    metadata.create_all(connection)
    connection.execute(
        about.insert(),
        [{"name": "version", "value": str(SCHEMA_VERSION)}, {"name": "created_by", "value": created_by}],
    )


def complete(connection: Connection) -> None:
    """Creates tables that databases of this version may lack."""
    answers.create(connection, checkfirst=True)


def version_of(connection: Connection) -> int | None:
    value = connection.execute(select(about.c.value).where(about.c.name == "version")).scalar_one_or_none()
    return int(value) if value is not None and value.isdecimal() else None
