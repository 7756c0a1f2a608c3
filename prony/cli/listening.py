"""Who hears of an experiment while it runs, put together for every command that measures: the screen, the
progress journal, a scraper (--metrics), a search engine (--push).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from prony.cli.common import Common

if TYPE_CHECKING:
    from prony.experiment.testbed import Progress
    from prony.push.cluster import Cluster
    from prony.push.pushing import PushTrials
    from prony.store import Store


@contextmanager
def listening(common: Common, progress: Progress, store: Store) -> Iterator[Progress]:
    """The screen and all others as one. Raises PronyError before anything is measured: for an address that
    cannot be had, a URL that is none.
    """
    from prony.experiment.listeners import Listeners
    from prony.report.journal import Journal

    with ExitStack() as stack:
        listeners: list[Progress] = [progress, stack.enter_context(Journal(store.where))]
        if common.metrics is not None:
            listeners.append(stack.enter_context(_scraped(common.metrics, progress)))
        if common.push is not None:
            listeners.append(stack.enter_context(_pushed(common.push, progress, store)))
        yield Listeners(*listeners)


@contextmanager
def _scraped(text: str, progress: Progress) -> Iterator[Progress]:
    from prony.metrics.endpoint import address, served
    from prony.metrics.live import LiveMetrics

    host, port = address(text)
    metrics = LiveMetrics()
    with served(host, port, metrics.families) as (_, bound):
        shown = f"[{host}]" if ":" in host else host
        progress.note(f"metrics: http://{shown}:{bound}/metrics")
        yield metrics


@contextmanager
def _pushed(url: str, progress: Progress, store: Store) -> Iterator[Progress]:
    """Trial by trial, and at the end what is left, however the experiment ended."""
    from prony.push.cluster import BRIEF, Cluster
    from prony.push.pushing import PushTrials

    cluster = Cluster(url, BRIEF)
    trials = PushTrials(store, cluster, progress.note)
    trials.begin()
    try:
        yield trials
    finally:
        if trials.identifier:
            _finish(store, trials, cluster)


def _finish(store: Store, trials: PushTrials, cluster: Cluster) -> None:
    from prony.push.faults import PushFault
    from prony.push.pushing import push

    try:
        pushed = push(store, trials.identifier, cluster)
    except PushFault as fault:
        print(
            f"prony: not everything was pushed: {fault}; the results are stored; to continue: "
            f"prony results push {trials.identifier} --to {cluster.where}",
            file=sys.stderr,
        )
        return
    print(pushed.sentence(), file=sys.stderr)
    for one in pushed.sent.rejected:
        print(f"prony: rejected: {one}", file=sys.stderr)
