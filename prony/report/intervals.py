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
    found = trial.percentiles.get(figure)
    value = trial.figure(figure)
    if found is None or (value is None and math.isfinite(found.value_ms)):
        return TableCell(rounded(figure, value))
    low, high = (_bounded(figure, end, found.above_ms) for end in (found.low_ms, found.high_ms))
    text = _bounded(figure, math.inf if value is None else value, found.above_ms)
    return TableCell(text, f"[{low}, open)" if found.open else f"[{low}, {high}]")


def has_figure(figure: str, trial: TrialView) -> bool:
    return trial.figure(figure) is not None or trial.beyond(figure) is not None


def _bounded(figure: str, value: float, above: float) -> str:
    return rounded(figure, value) if math.isfinite(value) else f"> {rounded(figure, above)}"


def over_trials(figure: str, found: Spread, value: float) -> str:
    """A value of a figure over trials, as a lower bound where it is one."""
    return ("> " if found.exceeded(value) else "") + rounded(figure, value)


def between(figure: str, found: Spread) -> str:
    """`[low, high]`, the 95 % interval of the median; below six trials the range; of one trial nothing."""
    if found.n == 1:
        return ""
    interval = found.median_low is not None and found.median_high is not None
    ends = (found.median_low, found.median_high) if interval else (found.low, found.high)
    low, high = (over_trials(figure, found, end) for end in ends if end is not None)
    if low == high:
        return "all equal"
    return f"[{low}, {high}]" if interval else f"{low}–{high}"


def heading(spreads: Iterable[Spread | None]) -> str:
    intervals = any(found is not None and found.median_low is not None for found in spreads)
    return "median [95 % interval] over trials" if intervals else "median (min–max) over trials"


MEAN_OF = "the mean leaves out requests without a response that did not time out"


def times_lines(trial: TrialView) -> tuple[str, ...]:
    """What the times of one trial are besides the figures: from where they count, what failed requests do."""
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
        alone = {name: found.responses_ms for name, found in supported(times).items()}
        lines.append(
            f"{counted(times.failed, 'request')} without a response ({percent(times.failed / times.count)}) "
            f"count as longer than any; of the responses alone {_said(alone)}; {MEAN_OF}"
        )
    return tuple(lines)


def failed_lines(cells: Sequence[CellView]) -> list[Block]:
    """A line per cell in which requests had no response, with the percentiles of the responses alone."""
    lines = []
    for cell in cells:
        found = [one for trial in cell.counting if (one := _times(trial)) is not None and one.failed]
        if found:
            share = sum(one.failed for one in found) / sum(one.count for one in found)
            alone = [{name: p.responses_ms for name, p in supported(one).items()} for one in found]
            names = [name for name in SAID if all(one.get(name) is not None for one in alone)]
            middles = {name: median_high(one[name] or 0.0 for one in alone) for name in names}
            lines.append(
                f"{cell.label}: {percent(share)} in {counted(len(found), 'trial')}; of the responses alone "
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
