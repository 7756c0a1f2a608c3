"""CPU use by other processes while a tool ran."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

from prony.host.others import Census, census, irq_time_accounted, others_between, share_of_others
from prony.host.proc import TICKS_PER_S, CpuTicks, cpu_ticks, process_stat
from prony.numbers import percent

OTHERS_LIMIT = 0.05
STEAL_LIMIT = 0.01
"""Limits of the check `isolation` (docs/method.md)."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The host at one moment."""

    t_monotonic_s: float
    census: Census
    cpus: dict[int, CpuTicks]


@dataclass(frozen=True, slots=True)
class Disturbance:
    """CPU time of others on the two CPUs and steal, as shares of wall time; None: unknown."""

    client: float | None
    server: float | None
    steal: float | None
    busiest: str | None = None

    @property
    def reason(self) -> str | None:
        """Why figures of this span give no verdict; None if undisturbed."""
        named = f" (most of all {self.busiest})" if self.busiest else ""
        for side, share in (("client", self.client), ("server", self.server)):
            if share is None:
                return f"other processes' use of the {side}'s CPU was not readable"
            if share >= OTHERS_LIMIT:
                return f"others used {percent(share)} of the {side}'s CPU{named}"
        if self.steal is None:
            return "steal was not readable"
        if self.steal >= STEAL_LIMIT:
            return f"the hypervisor took {percent(self.steal)} of a CPU"
        return None


def now() -> Moment:
    """Reads the host; takes milliseconds of CPU, so only before and after a run."""
    return Moment(time.monotonic(), census(), cpu_ticks() or {})


def identities(pids: Iterable[int]) -> set[tuple[int, int]]:
    """(pid, start tick) of this process and of these, if alive."""
    stats = (process_stat(pid) for pid in [os.getpid(), *pids])
    return {(stat.pid, stat.started_ticks) for stat in stats if stat is not None}


def between(
    before: Moment,
    after: Moment,
    *,
    own: set[tuple[int, int]],
    client: tuple[int, float],
    server: tuple[int, float],
) -> Disturbance:
    """Use by others between two moments. `client`, `server`: CPU number, CPU seconds of our own processes on
    it.
    """
    wall_s = after.t_monotonic_s - before.t_monotonic_s
    others = others_between(before.census, after.census, own)
    accounted = irq_time_accounted()
    shares: list[float | None] = []
    steals: list[float | None] = []
    for cpu, own_s in (client, server):
        early, late = before.cpus.get(cpu), after.cpus.get(cpu)
        if early is None or late is None or late.total <= early.total:
            shares.append(None)
            steals.append(None)
            continue
        shares.append(
            share_of_others(
                busy_s=(late.busy - early.busy) / TICKS_PER_S,
                irq_s=(late.irq - early.irq) / TICKS_PER_S,
                own_s=own_s,
                others=others,
                irq_accounted=accounted,
                capacity_s=wall_s,
            )
        )
        steals.append((late.steal - early.steal) / (late.total - early.total))
    known = [steal for steal in steals if steal is not None]
    return Disturbance(
        client=shares[0],
        server=shares[1],
        steal=max(known) if len(known) == len(steals) else None,
        # Name only: its share includes earlier CPU time of children that ended meanwhile.
        busiest=None if others.busiest is None else others.busiest.partition(" (")[0],
    )
