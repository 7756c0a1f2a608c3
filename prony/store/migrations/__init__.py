"""Brings a store of an earlier schema to the present one, by Alembic, in the transaction of the connection.

`versions/vN.py` leads from schema N - 1 to N; its revision is the number. Alembic's own table only repeats
`prony_schema`, which also programs read that knew no Alembic. Must not know experiments and trials.
"""

from __future__ import annotations

import logging
from pathlib import Path

from sqlalchemy import Connection

HERE = Path(__file__).parent
CONNECTION = "connection"
"""Key of the connection among the attributes of Alembic's configuration."""


def upgrade(connection: Connection, found: int, wanted: int) -> None:
    """From the schema version `found` to `wanted`; `found` 0 is an empty database. Changes nothing if a step
    fails: the caller's transaction is rolled back.
    """
    from alembic import command  # a quarter of a second that only an old store costs
    from alembic.config import Config

    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", str(HERE).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes[CONNECTION] = connection
    command.stamp(config, str(found) if found else "base", purge=True)
    command.upgrade(config, str(wanted))
