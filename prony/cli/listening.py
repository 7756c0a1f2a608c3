"""Who hears of an experiment while it runs, put together for every command that measures. Must not judge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prony.experiment.testbed import Progress
    from prony.store import Store


@contextmanager
def listening(progress: Progress, store: Store) -> Iterator[Progress]:
    """The screen, and the progress journal beside the store."""
    from prony.experiment.listeners import Listeners
    from prony.report.journal import Journal

    with Journal(store.where) as journal:
        yield Listeners(progress, journal)
