"""Whether this user's threads may have real-time priority, as the engine's measuring threads do."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from prony.host.proc import ROOT, read_int


@dataclass(frozen=True, slots=True)
class Realtime:
    """`runtime_us`: real-time share of each period; negative: all of it; None: not read."""

    permitted: bool
    runtime_us: int | None

    @property
    def used(self) -> bool:
        """Whether the engine uses it: only if ordinary threads keep a share of each CPU."""
        return self.permitted and self.runtime_us is not None and self.runtime_us >= 0


def realtime(root: Path = ROOT) -> Realtime:
    """Tries it with an idle thread: only the kernel combines rights, limits and the control group's share."""
    permitted: list[bool] = []
    thread = threading.Thread(target=lambda: permitted.append(_first()))
    thread.start()
    thread.join()
    return Realtime(permitted == [True], read_int(root / "proc/sys/kernel/sched_rt_runtime_us"))


def _first() -> bool:
    try:  # 0 is the calling thread
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError:
        return False
    return True
