"""Schema 2: summaries, which lists and series read in place of records; tags and notes. No table of schema 1
changes. The summaries are filled afterwards (prony.store.summaries).
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Four tables and two indexes more."""
    op.create_index("experiments_by_time", "experiments", ["created"])
    op.create_index("trials_by_series", "trials", ["server", "workload", "load_name"])
    op.create_table(
        "experiment_summaries",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column(
            "experiment_id", sa.String(32), sa.ForeignKey("experiments.id"), nullable=False, unique=True
        ),
        sa.Column("command", sa.String(32), nullable=False),
        sa.Column("hostname", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "trial_summaries",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("trial_id", sa.String(64), sa.ForeignKey("trials.id"), nullable=False, unique=True),
        sa.Column("cell", sa.Text, nullable=False),
        sa.Column("plan_key", sa.String(16), nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("bound_by", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("versions", sa.Text, nullable=False),
        sa.Column("build_key", sa.Text),
        sa.Column("figures", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "tags",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("experiment_id", sa.String(32), sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("made", sa.String(40), nullable=False),
        sa.Column("made_by", sa.Text, nullable=False),
    )
    op.create_index("tags_by_experiment", "tags", ["experiment_id"])
    op.create_table(
        "notes",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("experiment_id", sa.String(32), sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("made", sa.String(40), nullable=False),
        sa.Column("made_by", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("notes_by_experiment", "notes", ["experiment_id"])
