"""The state of an experiment's progress, and the silent progress. Draws nothing."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from prony.evidence.engine import IntervalRow
from prony.evidence.trial import Evidence, TrialRecord
from prony.judge.estimate import estimates
from prony.judge.finding import Judgement
from prony.numbers import milliseconds
from prony.report.wording import ABSENT, figure_good_to, number

log = logging.getLogger("prony.report.progress")

P = ParamSpec("P")
S = TypeVar("S")


def harmless(method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """A fault of the screen must not end a measurement: it goes to the log."""

    @functools.wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception:
            log.info("progress output failed in %s", method.__name__, exc_info=True)

    return guarded


class SilentProgress:
    """Says nothing (for --json and for tests); the visible forms are made from it."""

    def experiment_started(self, total_trials: int, estimate_s: float, ended: int = 0) -> None: ...
    def stored_as(self, identifier: str, title: str) -> None: ...
    def build(self, server: str, line: str) -> None: ...
    def trial_started(self, index: int, server: str, block: int, planned_s: float) -> None: ...
    def phase(self, name: str, expected_s: float | None) -> None: ...
    def row(self, row: IntervalRow) -> None: ...
    def trial_stored(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None: ...
    def trial_ended(self, judgement: Judgement, figures: Mapping[str, float], seconds: float) -> None: ...
    def note(self, text: str) -> None: ...
    def finished(self) -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finished()


@dataclass(slots=True)
class State:
    """Progress of an experiment, as both visible forms draw it."""

    clock: Callable[[], float]
    started_s: float = 0.0
    total: int = 0
    """Trials of this run ..."""
    earlier: int = 0
    """... and those that ended in earlier runs of the experiment."""
    estimate_s: float = 0.0
    ended: set[int] = field(default_factory=set)
    """Indices of ended trials; a repeated trial counts once."""
    ended_planned_s: float = 0.0
    took_s: float = 0.0
    took_planned_s: float = 0.0
    """Planned time of the same trials, with repeats, s."""
    index: int = 0
    server: str = ""
    block: int = 0
    trial_started_s: float | None = None
    trial_planned_s: float = 0.0
    phase: str = ""
    phase_started_s: float = 0.0
    phase_expected_s: float | None = None
    row: IntervalRow | None = None
    evidence: Evidence | None = None
    outer: list[tuple[int, str, float]] = field(default_factory=list)
    """Trials of a duet that rest while a later one runs: number, server, planned."""

    @property
    def done(self) -> int:
        return len(self.ended)

    @property
    def every(self) -> int:
        """All trials of the experiment, as far as they are known: a trial's index is among these."""
        return self.earlier + self.total

    def elapsed_s(self) -> float:
        return self.clock() - self.started_s

    def phase_elapsed_s(self) -> float:
        return self.clock() - self.phase_started_s

    def left_s(self) -> float | None:
        """What is left of the estimate × how much longer the ended trials took; None when unknown."""
        planned_s = self.estimate_s - self.ended_planned_s
        if not self.total or self.done >= self.total or planned_s <= 0:
            return None
        pace = self.took_s / self.took_planned_s if self.took_planned_s else 1.0
        running_s = 0.0 if self.trial_started_s is None else self.clock() - self.trial_started_s
        return max(0.0, planned_s * pace - min(running_s, self.trial_planned_s * pace))

    def share(self) -> float:
        left = self.left_s()
        elapsed = self.elapsed_s()
        if self.total and self.done >= self.total:
            return 1.0
        return elapsed / (elapsed + left) if left is not None and elapsed + left > 0 else 0.0

    def begin(self, total: int, estimate_s: float, ended: int) -> None:
        self.total, self.estimate_s, self.earlier = total, estimate_s, ended

    def start_trial(self, index: int, server: str, block: int, planned_s: float) -> None:
        if self.trial_started_s is not None:
            self.outer.append((self.index, self.server, self.trial_planned_s))
        self.index, self.server, self.block, self.row, self.evidence = index, server, block, None, None
        self.trial_planned_s = planned_s
        self.trial_started_s = self.clock()
        self.start_phase("", None)

    def start_phase(self, name: str, expected_s: float | None) -> None:
        self.phase, self.phase_expected_s = name, expected_s
        self.phase_started_s = self.clock()

    def end_trial(self, seconds: float) -> None:
        self.took_s += seconds
        self.took_planned_s += self.trial_planned_s
        if self.index not in self.ended:
            self.ended.add(self.index)
            self.ended_planned_s += self.trial_planned_s
        self.trial_started_s = None
        self.row = None
        if self.outer:
            self.index, self.server, self.trial_planned_s = self.outer.pop()
            self.trial_started_s = self.clock()
            self.start_phase("", None)

    def outcome(self, judgement: Judgement, figures: Mapping[str, float]) -> str:
        """Rate (open load: p99) of the trial just stored, and how good it is; or why it does not conform."""
        if not judgement.conforms:
            first = next(iter(judgement.not_conforming), None)
            return "does not conform" + ("" if first is None else f": {first.check}: {first.reason}")
        if self.evidence is None:
            return "no figure"
        is_open = self.evidence.load.model == "open"
        name = "p99_ms" if is_open else "requests_per_s"
        headline = {name: figures[name]} if name in figures else {}
        rate = estimates(self.evidence, judgement, headline).get(name)
        if rate is None:
            return "no figure"
        if is_open:
            return f"p99 {figure_good_to(rate.value, *rate.uncertainty.worst, milliseconds, ' ')}"
        return figure_good_to(
            rate.value, *rate.uncertainty.worst, lambda per_s: f"{number(per_s)} requests/s"
        )

    def rates(self) -> str:
        if self.row is None:
            return ""
        p99 = ABSENT if self.row.p99_ns is None else milliseconds(self.row.p99_ns / 1e6)
        text = f"{number(self.row.completed_per_s)}/s  p99 {p99}"
        return text + (f"  {number(self.row.failed)} failed" if self.row.failed else "")

    def phase_time(self) -> str:
        """How far the phase is: 5 of 30 s; once it takes longer than that, no longer a share of it."""
        elapsed_s, expected_s = self.phase_elapsed_s(), self.phase_expected_s
        if expected_s is None:
            return f"{elapsed_s:.0f} s"
        if elapsed_s > expected_s + 1:
            return f"{elapsed_s:.0f} s, expected {expected_s:.0f} s"
        return f"{elapsed_s:.0f} of {expected_s:.0f} s"
