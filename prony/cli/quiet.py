"""Waits before a trial while another process is busy, on an interactive terminal."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prony.host.quiet import busiest_other

if TYPE_CHECKING:
    from prony.experiment.testbed import Progress

MOST_S = 120.0
"""Limit per experiment."""
PHASE = "waiting for quiet"


@dataclass(slots=True)
class Quiet:
    """Called before each trial with the processes that are to be measured."""

    busiest: Callable[[Iterable[int]], str | None] = busiest_other
    entered: Callable[[float], bool] = lambda seconds: _entered(seconds)
    clock: Callable[[], float] = time.monotonic
    left_s: float = MOST_S

    def __call__(self, progress: Progress, ours: Iterable[int]) -> None:
        begun_s = self.clock()
        ours = tuple(ours)
        waiting = False
        while self.left_s > 0 and (busiest := self.busiest(ours)) is not None:
            if not waiting:
                progress.note(f"host busy: {busiest}; waiting for quiet, Enter measures anyway")
                progress.phase(PHASE, self.left_s)
                waiting = True
            if self.entered(1.0) or self.clock() - begun_s > self.left_s:
                self.left_s = 0.0
        if waiting and self.left_s:
            self.left_s -= self.clock() - begun_s


def attended() -> Quiet | None:
    """None without a terminal to read from and write to, and in CI."""
    return Quiet() if sys.stdin.isatty() and sys.stderr.isatty() and not os.environ.get("CI") else None


def _entered(seconds: float) -> bool:
    """Whether Enter was pressed within this time."""
    if not select.select([sys.stdin], [], [], seconds)[0]:
        return False
    sys.stdin.readline()
    return True
