"""Schema 3: whether a trial conforms, in place of a verdict of four words. Trials that were invalid do not
conform, all others do; what the judgements themselves say stays as it was written.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Two columns each in place of another. SQLite copies the tables."""
    for name, options in (("judgements", {}), ("trial_summaries", {"sqlite_autoincrement": True})):
        op.add_column(name, sa.Column("conforms", sa.Boolean))
        table = sa.table(name, sa.column("verdict"), sa.column("conforms"))
        op.execute(table.update().values(conforms=table.c.verdict != "invalid"))
        with op.batch_alter_table(name, table_kwargs=options) as batch:
            batch.alter_column("conforms", existing_type=sa.Boolean, nullable=False)
            batch.drop_column("verdict")
    op.execute("UPDATE trial_summaries SET reason = '' WHERE conforms")
