"""Progress listeners of a run besides the screen: progress journal, --metrics endpoint, --push target."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from prony.cli.common import Common
from prony_serve.journal import Journal

if TYPE_CHECKING:
    from prony.experiment.testbed import Progress
    from prony.store import Store
    from prony_serve.push.cluster import Cluster
    from prony_serve.push.pushing import PushTrials


@contextmanager
def listeners(common: Common, progress: Progress, store: Store) -> Iterator[list[Progress]]:
    """Opens them all. Raises PronyError before the first trial for an unusable address or an invalid URL."""
    with ExitStack() as stack:
        active: list[Progress] = [stack.enter_context(Journal(store.where))]
        if common.metrics is not None:
            active.append(stack.enter_context(_scraped(common.metrics, progress)))
        if common.push is not None:
            active.append(stack.enter_context(_pushed(common.push, progress, store)))
        yield active


@contextmanager
def _scraped(text: str, progress: Progress) -> Iterator[Progress]:
    from prony_serve.metrics.endpoint import address, served
    from prony_serve.metrics.live import LiveMetrics

    host, port = address(text)
    metrics = LiveMetrics()
    with served(host, port, metrics.families) as (_, bound):
        shown = f"[{host}]" if ":" in host else host
        progress.note(f"metrics: http://{shown}:{bound}/metrics")
        yield metrics


@contextmanager
def _pushed(url: str, progress: Progress, store: Store) -> Iterator[Progress]:
    """Pushes each trial when it ends, and the rest at the end, also after a failure."""
    from prony_serve.push.cluster import BRIEF, Cluster
    from prony_serve.push.pushing import PushTrials

    cluster = Cluster(url, BRIEF)
    trials = PushTrials(store, cluster, progress.note)
    trials.begin()
    try:
        yield trials
    finally:
        if trials.identifier:
            _finish(store, trials, cluster)


def _finish(store: Store, trials: PushTrials, cluster: Cluster) -> None:
    from prony_serve.push.faults import PushFault
    from prony_serve.push.pushing import push

    try:
        pushed = push(store, trials.identifier, cluster)
    except PushFault as fault:
        print(
            f"prony: push incomplete: {fault}; the results are stored; to continue: "
            f"prony results push {trials.identifier} --to {cluster.where}",
            file=sys.stderr,
        )
        return
    print(pushed.sentence(), file=sys.stderr)
    for document in pushed.sent.rejected:
        print(f"prony: rejected: {document}", file=sys.stderr)
