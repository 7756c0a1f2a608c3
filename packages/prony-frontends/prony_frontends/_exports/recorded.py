"""The histogram of each trial that counts, for formats that hold distributions. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from prony.errors import UsageError
from prony.evidence.engine import Histogram, Window
from prony.judge.times import headline, without_response
from prony.judge.window import measured
from prony.report.cell_view import TrialView
from prony.report.result import ResultView
from prony.report.tidy import at
from prony.report.wording import counted


@dataclass(frozen=True, slots=True)
class Recorded:
    """The headline times of one trial's window: latencies of an open load, else response or service times."""

    trial: TrialView
    window: Window
    times: Histogram
    began: datetime
    """When the window opened, by the wall clock of the load generator."""

    @property
    def ended(self) -> datetime:
        return self.began + timedelta(seconds=self.window.duration_s)


def recorded(view: ResultView) -> list[Recorded]:
    """Of every trial that counts, in the order in which they ran. Raises UsageError when there is none."""
    found = [one for trial in view.trials if trial.counts and (one := _recorded(trial)) is not None]
    if not found:
        raise UsageError(
            f"{view.id} has no trial whose times may be printed: none conforms, or none has a window; "
            f"prony results show {view.id} says why"
        )
    return found


def _recorded(trial: TrialView) -> Recorded | None:
    evidence = trial.record.evidence
    window = measured(evidence)
    if window is None or evidence.engine is None:
        return None
    times = headline(window, evidence.load.model)
    if times is None or not times.count:
        return None
    return Recorded(trial, window, times, at(trial, window.opened_ms))


def note(view: ResultView, found: Sequence[Recorded]) -> str:
    """What the distributions do not hold: trials that do not count, and requests without a response."""
    said = []
    out = len(view.trials) - len(found)
    if out:
        said.append(f"left out: {counted(out, 'trial')}, without a figure, a control or without times")
    failed = sum(without_response(one.trial.record.evidence) for one in found)
    if failed:
        said.append(
            f"{counted(failed, 'request')} without a response took longer than any that is in here; "
            "a timeout is in here with the time it had"
        )
    return "; ".join(said)
