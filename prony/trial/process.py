"""The process that several trials of a server use, one after the other."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from prony.errors import EnvironmentFault
from prony.evidence.trial import ProcessFacts
from prony.load.preflight import ReadyProbe
from prony.plan.plan import ScheduledTrial
from prony.targets.base import RunningTarget

ASK_EVERY_S = 0.05
PATIENCE_S = 10.0
"""Longest wait for a first response after the preceding load."""


@dataclass(slots=True)
class SharedProcess:
    """A process shared by consecutive trials. A trial that does not end well ends it."""

    keeps: bool = True
    """Whether the process stays for a later trial."""
    _running: RunningTarget | None = None
    _started_by: str = ""
    _loads: list[str] = field(default_factory=list)
    _workloads: set[str] = field(default_factory=set)

    def running(self) -> RunningTarget | None:
        """The process of the preceding trial; None if none, or ended since."""
        if self._running is not None and not _lives(self._running):
            self.end()
        if self._running is None:
            self._loads.clear()
            self._workloads.clear()
        return self._running

    @property
    def warm(self) -> bool:
        """Whether the process has had a load."""
        return self._running is not None and bool(self._loads)

    def had(self, workload: str) -> bool:
        """Whether the process has had this workload."""
        return self.warm and workload in self._workloads

    def keep(self, server: RunningTarget) -> None:
        """Take over a new process."""
        self._running = server

    def release(self, *, well: bool) -> bool | None:
        """End of a trial. Whether its process was gone after the stop; None: kept, or none."""
        return None if well and self.keeps else self.end()

    def facts(self, trial: str, workload: str, load: str) -> ProcessFacts:
        """Facts of the trial that just used it; call once per trial. `load`: its name within the process."""
        if not self._loads:
            self._started_by = trial
        self._loads.append(load)
        self._workloads.add(workload)
        place = len(self._loads) - 1
        return ProcessFacts(id=self._started_by, place=place, after=self._loads[place - 1] if place else "")

    def end(self) -> bool | None:
        """Stop it; whether it was gone afterwards. None: no process."""
        if self._running is None:
            return None
        gone = self._running.stop()
        self._running = None
        return gone


def answers_again(server: RunningTarget, ask: ReadyProbe, name: str) -> None:
    """Wait until a process responds after another load. Raises EnvironmentFault when it does not."""
    deadline_s = time.monotonic() + PATIENCE_S
    while ask() is None:
        end = server.exit_description()
        if end is not None or time.monotonic() > deadline_s:
            why = (
                f"it ended: {end}" if end is not None else f"{ask.result.no_response} for {PATIENCE_S:.0f} s"
            )
            raise EnvironmentFault(f"{name} does not respond after the preceding load: {why}")
        time.sleep(ASK_EVERY_S)


def _lives(server: RunningTarget) -> bool:
    try:
        return server.exit_description() is None and server.ended_service() is None
    except EnvironmentFault:  # its host is lost
        return False


@dataclass(slots=True)
class Processes:
    """Keeps a process between the trials that share it, and ends it before any other trial."""

    _key: str | None = None
    _process: SharedProcess | None = None

    def of(self, scheduled: ScheduledTrial, following: ScheduledTrial | None) -> SharedProcess | None:
        """The shared process of this trial; None: not shared. `following`: the next trial, if known."""
        if self._process is None or scheduled.process != self._key:
            self.end()
            if scheduled.process is None:
                return None
            self._key, self._process = scheduled.process, SharedProcess()
        self._process.keeps = following is not None and following.follows_in_process(scheduled)
        return self._process

    def end(self) -> None:
        """End the kept process."""
        process, self._key, self._process = self._process, None, None
        if process is not None:
            process.end()
