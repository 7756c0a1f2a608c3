"""Alembic runs this file for each command (prony.store.migrations calls it)."""

from __future__ import annotations

from typing import Any

from alembic import context
from sqlalchemy import update

from prony.store import schema
from prony.store.migrations import CONNECTION


def _remember(*_: Any, **applied: Any) -> None:
    """`prony_schema` says the version to every Prony."""
    step = applied["step"]
    connection = context.get_bind()
    for revision in step.up_revision_ids if step.is_upgrade and not step.is_stamp else ():
        connection.execute(
            update(schema.about).where(schema.about.c.name == "version").values(value=str(revision))
        )


def _run() -> None:
    context.configure(
        connection=context.config.attributes[CONNECTION],
        target_metadata=schema.metadata,
        on_version_apply=_remember,
    )
    with context.begin_transaction():
        context.run_migrations()


if __name__ == "env_py":  # as Alembic calls it; who only imports it runs nothing
    _run()
