"""What charts draw of a trial or a cell: curves, thinned series, ceilings; and the same in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from prony.evidence.engine import IntervalRow
from prony.judge.figures import published_mark
from prony.judge.percentiles import percentile_series
from prony.judge.times import headline_times
from prony.report.cell_view import HEADLINE, CellView, TrialView
from prony.report.html.charts import MOST_POINTS
from prony.report.labels import label_of, rounded, unit_of
from prony.report.wording import number
from prony.steady.detector import full_rows


def percentiles(trial: TrialView) -> tuple[tuple[float, float], ...]:
    """(share below, milliseconds) as far as the trial's sample supports it; empty without a histogram."""
    times = headline_times(trial.record.evidence)
    curve = () if times is None else percentile_series(times)
    return tuple((p.percentile / 100, p.value_ms) for p in curve if p.percentile > 0)


def latency_words(trial: TrialView) -> str:
    known = ((f, trial.figure(f)) for f in ("p50_ms", "p90_ms", "p99_ms", "p999_ms"))
    return ", ".join(f"{label_of(f)} {rounded(f, v)} {unit_of(f)}" for f, v in known if v is not None)


def interval_rows(trial: TrialView) -> Sequence[IntervalRow]:
    engine = trial.record.evidence.engine
    return engine.rows if engine is not None else ()


def mark_s(trial: TrialView) -> float | None:
    """Where the rows reach the published number of requests; None where an engine of its own sent those."""
    evidence = trial.record.evidence
    mark = published_mark(evidence) if evidence.published is None else None
    return None if mark is None else mark.elapsed_ms / 1000


def thinned(trial: TrialView) -> list[tuple[float, float]]:
    """(middle of the stretch in s, completed per second), at most MOST_POINTS of them."""
    rows = full_rows(interval_rows(trial))
    each = max(1, -(-len(rows) // MOST_POINTS))
    points = []
    for at in range(0, len(rows), each):
        part = rows[at : at + each]
        span_ms = sum(row.duration_ms for row in part)
        start_ms = part[0].t_ms - part[0].duration_ms
        rate = sum(row.completed for row in part) / (span_ms / 1000) if span_ms > 0 else 0.0
        points.append(((start_ms + part[-1].t_ms) / 2000, rate))
    return points


def percents(shares: tuple[float, ...]) -> str:
    return ", ".join(f"{number(share * 100)} %" for share in shares) or "unknown"


def known(share: float | None) -> tuple[float, ...]:
    return () if share is None else (share,)


def rates(cell: CellView) -> tuple[float, ...]:
    return tuple(rate for trial in cell.counting if (rate := trial.figure(HEADLINE)) is not None)


def ceilings(cell: CellView) -> tuple[tuple[str, float], ...]:
    """(name with its rate, rate): declared ones of the server, and what the client reached beforehand."""
    if not cell.trials:
        return ()
    evidence = cell.trials[0].record.evidence
    found = [(f"{one.name} {number(one.per_s)}/s", one.per_s) for one in evidence.ceilings]
    if evidence.calibration is not None:
        at = evidence.calibration.ceiling_per_s
        found.append((f"client {number(at)}/s", at))
    return tuple(found)


def bound_words(cell: CellView, limits: Sequence[tuple[str, float]]) -> str:
    found = cell.figure(HEADLINE)
    reached = "no figure" if found is None else f"{number(found.median)}/s"
    names = ", ".join(name for name, _ in limits) or "none is known"
    return f"{cell.cell.server}: {reached}; ceilings: {names}; bound by {cell.bound_by or 'nothing known'}"
