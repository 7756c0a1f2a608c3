"""The beginning and the end of an experiment in the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from prony.errors import EnvironmentFault
from prony.experiment.testbed import Testbed
from prony.host.affinity import pin_self
from prony.store import ExperimentStatus, Store


def begin(
    store: Store, testbed: Testbed, *, name: str, spec: Mapping[str, Any], seed: int, quick: bool
) -> str:
    """The id of a new experiment. Call it after the builds, which may use every CPU: from here on the
    laboratory keeps to the client's. Raises StoreError.
    """
    ready(store, testbed)
    return store.create_experiment(
        name=name, spec=spec, fingerprint=testbed.fingerprint, seed=seed, quick=quick
    )


def ready(store: Store, testbed: Testbed) -> None:
    """Keep to the client's CPUs, and see that results can be kept before hours of measuring."""
    if testbed.hosts is None:
        pin_self(testbed.partition.client)
    store.check_writable()


@contextmanager
def until_ended(store: Store, identifier: str) -> Iterator[None]:
    """Whatever ends the trials is noted: *finished* when all have ended, else *interrupted*; an experiment
    that could not begin leaves nothing.
    """
    status: ExperimentStatus = "interrupted"
    try:
        yield
        status = "finished"
    except EnvironmentFault:
        store.drop_empty(identifier)
        raise
    finally:
        store.finish_experiment(identifier, status)
