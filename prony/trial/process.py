"""The process that several trials of a server use, one after the other."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from prony.errors import EnvironmentFault
from prony.evidence.trial import ProcessFacts
from prony.load.asked import ReadyProbe
from prony.plan.plan import ScheduledTrial
from prony.targets.base import RunningTarget

ASK_EVERY_S = 0.05
PATIENCE_S = 10.0
"""A server that the load before has kept busy may take so long for a first response."""


@dataclass(slots=True)
class SharedProcess:
    """One process at a time. A trial that does not end well ends it, and the next trial starts another."""

    keeps: bool = True
    """Whether the next trial leaves it running, as another one will use it."""
    _running: RunningTarget | None = None
    _started_by: str = ""
    _loads: list[str] = field(default_factory=list)
    _workloads: set[str] = field(default_factory=set)

    def found(self) -> RunningTarget | None:
        """The process that the trial before left running; None where there is none, or it has ended since."""
        if self._running is not None and not _lives(self._running):
            self.end()
        if self._running is None:
            self._loads.clear()
            self._workloads.clear()
        return self._running

    @property
    def warm(self) -> bool:
        """Whether the process that runs has had a load."""
        return self._running is not None and bool(self._loads)

    def had(self, workload: str) -> bool:
        """Whether the process that runs has had a load of this workload."""
        return self.warm and workload in self._workloads

    def keep(self, server: RunningTarget) -> None:
        """This one has just been started."""
        self._running = server

    def release(self, *, well: bool) -> bool | None:
        """A trial is over. Whether its process was gone after the stop; None: kept, or none."""
        return None if well and self.keeps else self.end()

    def facts(self, trial: str, workload: str, load: str) -> ProcessFacts:
        """Of the trial that has just used it, once for each. `load`: its name within the process."""
        if not self._loads:
            self._started_by = trial
        self._loads.append(load)
        self._workloads.add(workload)
        place = len(self._loads) - 1
        return ProcessFacts(id=self._started_by, place=place, after=self._loads[place - 1] if place else "")

    def end(self) -> bool | None:
        """Stop it; whether it was gone then. None: there is none."""
        if self._running is None:
            return None
        gone = self._running.stop()
        self._running = None
        return gone


def answers_again(server: RunningTarget, ask: ReadyProbe, name: str) -> None:
    """Wait until a process that has had another load answers. Raises EnvironmentFault when it does not."""
    deadline_s = time.monotonic() + PATIENCE_S
    while ask() is None:
        end = server.exit_description()
        if end is not None or time.monotonic() > deadline_s:
            why = f"it ended: {end}" if end is not None else f"{ask.asked.silence} for {PATIENCE_S:.0f} s"
            raise EnvironmentFault(f"{name} no longer answers after the load before this one ({why})")
        time.sleep(ASK_EVERY_S)


def _lives(server: RunningTarget) -> bool:
    try:
        return server.exit_description() is None and server.ended_service() is None
    except EnvironmentFault:  # its host is lost
        return False


@dataclass(slots=True)
class Processes:
    """Keeps a process between the trials that share it, and ends it before anything else is run."""

    _key: str | None = None
    _process: SharedProcess | None = None

    def of(self, scheduled: ScheduledTrial, following: ScheduledTrial | None) -> SharedProcess | None:
        """The process of this trial; None: one of its own. `following`: what is known to run after it."""
        if self._process is None or scheduled.process != self._key:
            self.end()
            if scheduled.process is None:
                return None
            self._key, self._process = scheduled.process, SharedProcess()
        self._process.keeps = following is not None and following.follows_in_process(scheduled)
        return self._process

    def end(self) -> None:
        """Nothing more is run in the process that is kept."""
        process, self._key, self._process = self._process, None, None
        if process is not None:
            process.end()
