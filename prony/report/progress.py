"""What a person sees while a measurement runs: bars on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import IO, Any, Protocol

from rich.console import Console

from prony.evidence.engine import IntervalRow
from prony.evidence.trial import TrialRecord
from prony.experiment import testbed
from prony.judge.finding import Judgement
from prony.report.live import RichProgress
from prony.report.printable import printable
from prony.report.progress_state import SilentProgress, State, harmless
from prony.report.wording import clock, counted, duration

__all__ = [
    "AnyProgress",
    "PlainProgress",
    "ProgressDisplay",
    "RichProgress",
    "SilentProgress",
    "choose_progress",
]

PLAIN_LINE_EVERY_S = 5.0
"""How often the plain output tells where it is within a phase."""
ROW_S = 1.0
"""Rows come once a second: the one nearest to the moment is the one to print."""


class ProgressDisplay(testbed.Progress, Protocol):
    """What an experiment tells, and its end. No method raises (except on an interrupt by the user)."""

    def finished(self) -> None:
        """Nothing more will come: leave the terminal as it was found. May be called twice."""


class PlainProgress(SilentProgress):
    """One line per event, for logs and pipes: a line at each change of phase and one every five seconds."""

    def __init__(self, stream: IO[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._state = State(clock, started_s=clock())
        self._next_line_s = 0.0

    def _say(self, text: str) -> None:
        self._stream.write(f"[{clock(self._state.elapsed_s())}] {printable(text)}\n")
        self._stream.flush()

    def _where(self) -> str:
        state = self._state
        return f"trial {state.index} of {state.every or '?'} {state.server}"

    @harmless
    def experiment_started(self, total_trials: int, estimate_s: float, ended: int = 0) -> None:
        self._state.begin(total_trials, estimate_s, ended)
        self._say(f"{counted(total_trials, 'trial')}, about {duration(estimate_s)}")

    @harmless
    def build(self, server: str, line: str) -> None:
        self._say(f"build {server}: {line.rstrip()}")

    @harmless
    def trial_started(self, index: int, server: str, block: int, planned_s: float) -> None:
        self._state.start_trial(index, server, block, planned_s)
        self._say(f"{self._where()} (block {block + 1})")

    @harmless
    def phase(self, name: str, expected_s: float | None) -> None:
        self._state.start_phase(name, expected_s)
        self._next_line_s = self._state.clock() + PLAIN_LINE_EVERY_S
        about = "" if expected_s is None else f", about {duration(expected_s)}"
        self._say(f"{self._where()}: {name}{about}")

    @harmless
    def row(self, row: IntervalRow) -> None:
        state = self._state
        state.row = row
        if state.clock() < self._next_line_s - ROW_S / 2:
            return
        self._next_line_s = state.clock() + PLAIN_LINE_EVERY_S
        self._say(f"{self._where()}: {state.phase} {state.phase_time()}, {state.rates()}")

    @harmless
    def trial_stored(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:  # noqa: ARG002
        self._state.evidence = record.evidence

    @harmless
    def trial_ended(self, judgement: Judgement, figures: Mapping[str, float], seconds: float) -> None:
        self._state.end_trial(seconds)
        left = self._state.left_s()
        ahead = f", about {duration(left)} left" if left and self._state.done < self._state.total else ""
        said = f"{self._state.outcome(judgement, figures)}, took {duration(seconds)}{ahead}"
        self._say(f"{self._where()}: {said}")

    @harmless
    def note(self, text: str) -> None:
        self._say(text)

    @harmless
    def finished(self) -> None:
        self._stream.flush()


AnyProgress = SilentProgress


def choose_progress(console: Console, *, silent: bool = False) -> AnyProgress:
    """The form that fits where the output goes: bars on a terminal, lines elsewhere, nothing when asked."""
    if silent:
        return SilentProgress()
    live = console.is_terminal and not console.is_dumb_terminal
    return RichProgress(console) if live else PlainProgress(console.file)
