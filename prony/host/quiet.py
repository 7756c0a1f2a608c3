"""Is another process busy right now?"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from prony.host.others import census, others_between
from prony.host.proc import process_stat

BUSY_CPUS = 0.25
"""CPUs used by all other processes together, above which a figure's bias exceeds its usual interval."""


def busiest_other(ours: Iterable[int] = (), sample_s: float = 0.3) -> str | None:
    """The busiest process except this one and `ours`; None while the others use less than BUSY_CPUS."""
    before = census()
    time.sleep(sample_s)
    after = census()
    known = filter(None, map(process_stat, (os.getpid(), *ours)))
    use = others_between(before, after, {(process.pid, process.started_ticks) for process in known})
    busy = use.cpu_s >= BUSY_CPUS * (after.t_monotonic_s - before.t_monotonic_s)
    return use.busiest if busy else None
