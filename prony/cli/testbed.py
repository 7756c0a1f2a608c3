"""Prepares the host for a command that measures: CPUs, limits, fingerprint."""

from __future__ import annotations

import sys

import prony
from prony.errors import UsageError
from prony.experiment.testbed import Testbed
from prony.host.fingerprint import fingerprint
from prony.host.partition import partition
from prony.host.proc import parse_cpus
from prony.host.readings import io_uring_works
from prony.host.resource_limits import limits_to_own_servers, raise_descriptors
from prony.load.engine import engine_version


def prepare(
    server_cpus: str | None,
    client_cpus: str | None,
    *,
    services: bool = False,
    theirs: frozenset[int] = frozenset(),
) -> Testbed:
    """Choose the CPUs, raise the descriptor limit, look at the host. Raises UsageError.

    `services`: one of the servers has backing services, which get a CPU of their own beside all servers
    alike. `theirs`: where servers may run that somebody else placed. The limits are those towards servers
    that the laboratory starts; each target says its own.
    """
    chosen = partition(
        server=_cpus(server_cpus, "--server-cpus"),
        client=_cpus(client_cpus, "--client-cpus"),
        services=services,
    )
    raise_descriptors()
    software = {
        "prony": prony.__version__,
        "prony-engine": engine_version(),
        "python": ".".join(map(str, sys.version_info[:3])),
    }
    found = limits_to_own_servers().model_copy(update={"io_uring": io_uring_works()})
    return Testbed(
        partition=chosen,
        limits=found,
        fingerprint=fingerprint(software),
        named=server_cpus is not None or client_cpus is not None,
        theirs=theirs,
    )


def _cpus(text: str | None, option: str) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        cpus = parse_cpus(text)
    except UsageError as fault:
        raise UsageError(f"{option}: {fault}") from fault
    if not cpus:
        raise UsageError(f"{option} names no CPU; expected CPUs such as 0, 0-3 or 0,2,4-6")
    return cpus
