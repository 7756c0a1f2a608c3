"""The processes that trials of an experiment share, one at a time."""

from __future__ import annotations

from dataclasses import dataclass

from prony.plan.plan import ScheduledTrial
from prony.trial.process import SharedProcess


@dataclass(slots=True)
class Processes:
    """Keeps a process between the trials that share it, and ends it before anything else is run."""

    _key: str | None = None
    _process: SharedProcess | None = None

    def of(self, scheduled: ScheduledTrial, following: ScheduledTrial | None) -> SharedProcess | None:
        """The process of this trial; None where it has one of its own. `following`: what is run after it, as
        far as that is known.
        """
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
