"""How a figure is written with its interval, or with its range over trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median_high

from prony.judge.percentiles import Times
from prony.judge.times import headline, headline_times, supported, without_response
from prony.judge.window import measured
from prony.numbers import milliseconds, percent
from prony.report.blocks import Block, Lines, TableCell
from prony.report.cell_view import CellView, Spread, TrialView
from prony.report.labels import label_of, rounded
from prony.report.wording import counted

COUNTED_FROM = {
    "open": "latencies, from the intended send",
    "closed": "response times, from the start of the connect where a request opened a connection",
}
SAID = ("p50_ms", "p99_ms")
"""Of other times than the figures' own."""


def trial_cell(figure: str, trial: TrialView) -> TableCell:
    """A percentile with its interval, `[low, open)` where too few requests bound it from above."""
    p = trial.percentiles.get(figure)
    value = trial.figure(figure)
    if p is None or (value is None and math.isfinite(p.value_ms)):
        return TableCell(rounded(figure, value))
    low, high = (_bounded(figure, end, p.above_ms) for end in (p.low_ms, p.high_ms))
    text = _bounded(figure, math.inf if value is None else value, p.above_ms)
    return TableCell(text, f"[{low}, open)" if p.open else f"[{low}, {high}]")


def has_figure(figure: str, trial: TrialView) -> bool:
    return trial.figure(figure) is not None or trial.beyond(figure) is not None


def _bounded(figure: str, value: float, above: float) -> str:
    return rounded(figure, value) if math.isfinite(value) else f"> {rounded(figure, above)}"


def over_trials(figure: str, spread: Spread, value: float) -> str:
    """A figure's value over trials, with `>` if it is only a lower bound."""
    return ("> " if spread.exceeded(value) else "") + rounded(figure, value)


def between(figure: str, spread: Spread) -> str:
    """`[low, high]`, the 95 % interval of the median; below six trials the range; empty for one."""
    if spread.n == 1:
        return ""
    interval = spread.median_low is not None and spread.median_high is not None
    ends = (spread.median_low, spread.median_high) if interval else (spread.low, spread.high)
    low, high = (over_trials(figure, spread, end) for end in ends if end is not None)
    if low == high:
        return "all equal"
    return f"[{low}, {high}]" if interval else f"{low}–{high}"


def heading(spreads: Iterable[Spread | None]) -> str:
    intervals = any(spread is not None and spread.median_low is not None for spread in spreads)
    return "median [95 % interval] over trials" if intervals else "median (min–max) over trials"


MEAN_OF = "the mean leaves out requests without a response that did not time out"


def times_lines(trial: TrialView) -> tuple[str, ...]:
    """Notes on a trial's times: where they start, and the effect of failed requests."""
    window = measured(trial.record.evidence)
    if window is None:
        return ()
    lines = []
    model = trial.record.evidence.load.model
    if headline(window, model) is not window.service_time:
        names = {"p50_ms": "service_time_p50_ms", "p99_ms": "service_time_p99_ms"}
        service = {name: trial.figure(own) for name, own in names.items()}
        lines.append(f"times are {COUNTED_FROM[model]}; service time {_said(service)}")
    times = _times(trial)
    if times is not None and times.failed:
        alone = {name: percentile.responses_ms for name, percentile in supported(times).items()}
        lines.append(
            f"{counted(times.failed, 'request')} without a response ({percent(times.failed / times.count)}) "
            f"count as longer than any; of the responses alone {_said(alone)}; {MEAN_OF}"
        )
    return tuple(lines)


def failed_lines(cells: Sequence[CellView]) -> list[Block]:
    """A line per cell in which requests had no response, with the percentiles of the responses alone."""
    lines = []
    for cell in cells:
        failing = [times for trial in cell.counting if (times := _times(trial)) is not None and times.failed]
        if failing:
            share = sum(times.failed for times in failing) / sum(times.count for times in failing)
            alone = [{name: p.responses_ms for name, p in supported(times).items()} for times in failing]
            names = [name for name in SAID if all(times.get(name) is not None for times in alone)]
            middles = {name: median_high(values[name] or 0.0 for values in alone) for name in names}
            lines.append(
                f"{cell.label}: {percent(share)} in {counted(len(failing), 'trial')}; of the responses alone "
                f"{_said(middles)}; {MEAN_OF}"
            )
    note = "longer than any response in the percentiles above"
    return [Lines("Requests without a response", tuple(lines), note=note)] if lines else []


def _times(trial: TrialView) -> Times | None:
    evidence = trial.record.evidence
    return headline_times(evidence) if without_response(evidence) else None


def _said(values_ms: Mapping[str, float | None]) -> str:
    known = ((name, values_ms.get(name)) for name in SAID)
    words = [f"{label_of(name)} {milliseconds(value)}" for name, value in known if value is not None]
    return ", ".join(words) or "too few for a percentile"
