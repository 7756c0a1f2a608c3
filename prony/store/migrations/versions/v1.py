"""Schema 1: experiments, their trials, and how each trial was judged."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    """All tables of 0.1.0."""
    op.create_table(
        "prony_schema",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "experiments",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("ended", sa.String(40)),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("fingerprint_key", sa.String(32), nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("seed", sa.String(24), nullable=False),
        sa.Column("quick", sa.Boolean, nullable=False),
        sa.Column("prony_version", sa.String(32), nullable=False),
        sa.Column("owner", sa.String(160), nullable=False),
    )
    op.create_table(
        "trials",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("experiment_id", sa.String(32), sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("server", sa.String(128), nullable=False),
        sa.Column("workload", sa.String(128), nullable=False),
        sa.Column("load_name", sa.String(128), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("block", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("quick", sa.Boolean, nullable=False),
        sa.Column("started", sa.String(40), nullable=False),
        sa.Column("ended", sa.String(40), nullable=False),
        sa.Column("failure", sa.Text),
        sa.Column("fingerprint_key", sa.String(32), nullable=False),
        sa.Column("prony_version", sa.String(32), nullable=False),
        sa.Column("record_format", sa.String(16), nullable=False),
        sa.Column("record", sa.LargeBinary, nullable=False),
    )
    op.create_index("trials_by_experiment", "trials", ["experiment_id"])
    op.create_table(
        "judgements",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("trial_id", sa.String(64), sa.ForeignKey("trials.id"), nullable=False),
        sa.Column("made", sa.String(40), nullable=False),
        sa.Column("prony_version", sa.String(32), nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("judgement", sa.Text, nullable=False),
        sa.Column("figures", sa.Text, nullable=False),
    )
    op.create_index("judgements_by_trial", "judgements", ["trial_id"])
