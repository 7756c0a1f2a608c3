"""From the view to the page's charts: which values each one shows, and the same in words for who cannot see.

Must not know the page around a chart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from prony.evidence.engine import IntervalRow
from prony.judge.figures import published_mark
from prony.judge.histogram import HistogramError, decode, percentile_series
from prony.report.history import history
from prony.report.html import large_charts, small_charts
from prony.report.html.plot import Series
from prony.report.html.theme import accent, shape
from prony.report.labels import label_of, named, rounded, unit_of
from prony.report.model import ExperimentView, PairView, TrialView
from prony.report.summary import (
    HEADLINE,
    better_first,
    counting,
    join,
    median_trial,
    spread_of,
    value,
    verdict_word,
)
from prony.report.wording import number, ratio
from prony.steady.detector import full_rows

WIDE, NARROW = 760, 372
"""Widths in CSS pixels for which the large charts are laid out; the page picks one by its own width."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """One chart: `narrow` is None when the wide one is small enough for a phone."""

    words: str
    wide: Markup
    narrow: Markup | None = None
    heading: str = ""
    server: int | None = None
    """Place of the server whose colour goes with the heading."""
    note: str = ""


def series(view: ExperimentView, place: int) -> Series:
    """The mark of the server at this place."""
    return Series(view.servers[place].address, accent(place), shape(place))


def _both(key: str, words: str, draw: Callable[[int, str], str]) -> Drawing:
    return Drawing(words, Markup(draw(WIDE, f"{key}-w")), Markup(draw(NARROW, f"{key}-n")))


def ratios(view: ExperimentView) -> Drawing | None:
    """The intervals of the headline figure."""
    pairs = [pair for pair in view.pairs if pair.figure == HEADLINE]
    return _forest(view, pairs, "ratios", f"{label_of(HEADLINE)} of the first ÷ the second, log scale")


def other_ratios(view: ExperimentView) -> Drawing | None:
    """The intervals of every other figure that was compared."""
    pairs = [pair for pair in view.pairs if pair.figure != HEADLINE]
    return _forest(view, pairs, "other", "first ÷ second, log scale")


def _forest(view: ExperimentView, pairs: Sequence[PairView], name: str, axis: str) -> Drawing | None:
    rows = [
        large_charts.RatioRow(
            label=("" if pair.figure == HEADLINE else f"{label_of(pair.figure)}: ") + f"{pair.a} ÷ {pair.b}",
            ratio=pair.ratio,
            low=pair.low,
            high=pair.high,
            words=f"{verdict_word(pair)}  {ratio(pair.ratio)} [{ratio(pair.low)}, {ratio(pair.high)}]",
            conclusive=pair.verdict != "inconclusive",
        )
        for pair in map(better_first, pairs)
        if pair.ratio is not None and pair.low is not None and pair.high is not None and pair.low > 0
    ]
    if not rows:
        return None
    words = "Ratios with their intervals. " + "; ".join(f"{row.label}: {row.words}" for row in rows)
    band = (1 / (1 + view.band), 1 + view.band)
    return _both(
        name,
        words,
        lambda w, key: large_charts.forest(rows, band=band, axis=axis, width=w, key=key, title=words),
    )


def is_open(view: ExperimentView) -> bool:
    """Whether the times of this view are latencies of an open loop, from the intended send."""
    return any(t.record.evidence.load.model == "open" for t in view.trials)


def latency(view: ExperimentView) -> Drawing | None:
    """Service time (of an open loop: latency) by percentile, up to the highest percentile that each trial's
    sample supports.
    """
    curves = []
    told = []
    for place, server in enumerate(view.servers):
        middle = median_trial(view, server.address)
        for trial in counting(view, server.address):
            points = percentiles(trial)
            if len(points) > 1:
                curves.append(large_charts.Curve(series(view, place), points, trial is middle))
        if middle is not None:
            told += [f"{server.address}: " + latency_words(middle)]
    if not curves:
        return None
    times = "Latency" if is_open(view) else "Service time"
    words = f"{times} by percentile in the median trial of each server. " + "; ".join(told)
    return _both(
        "latency",
        words,
        lambda w, key: large_charts.latency(
            curves, width=w, height=340 if w == WIDE else 280, key=key, title=words
        ),
    )


def percentiles(trial: TrialView) -> tuple[tuple[float, float], ...]:
    """(share below, milliseconds) as far as the trial's sample supports it; empty without a histogram."""
    engine = trial.record.evidence.engine
    window = engine.window if engine else None
    if window is None:
        return ()
    recorded = window.latency if trial.record.evidence.load.model == "open" else window.service_time
    if recorded is None or recorded.count <= 0:
        return ()
    try:
        curve = percentile_series(decode(recorded))
    except HistogramError:
        return ()
    return tuple((p.percentile / 100, p.value_ms) for p in curve if p.percentile > 0)


def latency_words(trial: TrialView) -> str:
    """The percentiles of a trial that are known, in words."""
    known = [f for f in ("p50_ms", "p90_ms", "p99_ms", "p999_ms") if f in trial.figures]
    return ", ".join(f"{label_of(f)} {rounded(f, trial.figures[f])} {unit_of(f)}" for f in known)


def throughput(view: ExperimentView) -> tuple[Drawing, ...]:
    """One small chart per trial, on common axes, in the order of servers and blocks."""
    drawn = [t for t in view.trials if t.record.evidence.engine and t.record.evidence.engine.rows]
    if not drawn:
        return ()
    until_s = max(t.record.evidence.engine.rows[-1].t_ms for t in drawn if t.record.evidence.engine) / 1000
    most = max(
        r.completed_per_s for t in drawn if t.record.evidence.engine for r in t.record.evidence.engine.rows
    )
    made: list[Drawing] = []
    for place, server in enumerate(view.servers):
        for trial in drawn:
            if trial.record.server == server.address:
                key = f"over-{len(made)}"
                made.append(_throughput(view, place, trial, max(until_s, 1.0), max(most * 1.08, 1.0), key))
    return tuple(made)


def _throughput(
    view: ExperimentView, place: int, trial: TrialView, until_s: float, most_per_s: float, key: str
) -> Drawing:
    evidence = trial.record.evidence
    rows = evidence.engine.rows if evidence.engine else ()
    mark = published_mark(evidence)
    rate = trial.figures.get(HEADLINE)
    block = f"{'control' if trial.record.kind == 'control' else 'block'} {trial.record.block + 1}"
    verdict = "rejected" if trial.rejected_because else trial.judgement.verdict.value
    shown = f"{rounded(HEADLINE, rate)}/s" if trial.counts and rate is not None else "no figure"
    words = (
        f"{view.servers[place].address}, {block}, {verdict}: requests per second over {number(until_s)} s; "
        f"first second {number(rows[0].completed_per_s)}/s, window {shown}"
        + (f"; {number(mark.requests)} requests after {number(mark.elapsed_ms / 1000, 1)} s" if mark else "")
    )
    svg = small_charts.throughput(
        _thinned(full_rows(rows)),
        series=series(view, place),
        phases=[small_charts.Stretch(p.name, p.start_ms / 1000, p.end_ms / 1000) for p in evidence.phases],
        changes_s=[ms / 1000 for ms in trial.change_points_ms],
        mark_s=mark.elapsed_ms / 1000 if mark else None,
        until_s=until_s,
        most_per_s=most_per_s,
        key=key,
        title=words,
    )
    heading = f"{view.servers[place].address}, {block}"
    note = shown if verdict == "valid" else f"{shown}, {verdict}"
    return Drawing(words, Markup(svg), heading=heading, server=place, note=note)


MOST_POINTS = 360
"""A line needs no more points than this; longer runs are averaged into so many equal parts."""


def _thinned(rows: Sequence[IntervalRow]) -> list[tuple[float, float]]:
    """(middle of the stretch in s, completed per second), at most MOST_POINTS of them."""
    each = max(1, -(-len(rows) // MOST_POINTS))
    points = []
    for at in range(0, len(rows), each):
        part = rows[at : at + each]
        span_ms = sum(row.duration_ms for row in part)
        start_ms = part[0].t_ms - part[0].duration_ms
        rate = sum(row.completed for row in part) / (span_ms / 1000) if span_ms > 0 else 0.0
        points.append(((start_ms + part[-1].t_ms) / 2000, rate))
    return points


STARTING = (
    "time_to_ready_s",
    "jvm_memory_used_mb",
    "jvm_classes_loaded",
    "jvm_threads_live",
    "time_to_steady_s",
    "peak_rss_mib",
)


def start_up(view: ExperimentView) -> tuple[Drawing, ...]:
    """A strip of dots per figure of start-up and memory."""
    made: list[Drawing] = []
    for figure in STARTING:
        rows = []
        told = []
        for place, server in enumerate(view.servers):
            values = tuple(
                v for t in counting(view, server.address) if (v := value(t, figure)) is not None and v >= 0
            )
            found = spread_of(view, server.address, figure)
            middle = found.median if found else None
            words = rounded(figure, middle)
            rows.append(small_charts.Dots(series(view, place), values, middle, words))
            told.append(f"{server.address} {words}")
        if any(row.values for row in rows):
            name = named(figure)
            words = f"{name}, medians: {join(told)}"
            svg = small_charts.strips(rows, key=f"start-{figure}", title=words)
            made.append(Drawing(words, Markup(svg), heading=name))
    return tuple(made)


def cpu(view: ExperimentView) -> Drawing | None:
    """How busy server and client were over the window: one row per server, a pair of marks per trial.

    Rejected trials are shown too: who was busy is often why they were rejected.
    """
    rows = []
    told = []
    for place, server in enumerate(view.servers):
        trials = view.of(server.address)
        client = tuple(v for t in trials if (v := value(t, "client_cpu_share")) is not None)
        busy = tuple(v for t in trials if (v := value(t, "server_cpu_share")) is not None)
        if client or busy:
            rows.append(small_charts.Pair(series(view, place), client, busy))
            told.append(
                f"{server.address}: server {_percents(busy)} of its CPUs, client {_percents(client)} of a CPU"
            )
    if not rows:
        return None
    words = "CPU use over the window, a value per trial. " + "; ".join(told)
    most = max([1.0, *(v for r in rows for v in (*r.hollow, *r.solid))])
    return _both(
        "cpu",
        words,
        lambda w, key: small_charts.dumbbells(
            rows,
            domain=(0, most * 1.02),
            reference=None,
            tick_format=".0%",
            axis="share of the granted CPU time",
            key=key,
            title=words,
            width=w,
        ),
    )


def _percents(shares: tuple[float, ...]) -> str:
    return ", ".join(f"{number(share * 100)} %" for share in shares) or "unknown"


def published(view: ExperimentView) -> tuple[Drawing, ...]:
    """Per figure: the servers relative to their mean, as published (hollow) and as measured (solid)."""
    made: list[Drawing] = []
    for row in history(view):
        theirs, ours = row.published_shape, row.measured_shape
        pairs = [
            small_charts.Pair(series(view, place), _known(theirs[place]), _known(ours[place]))
            for place in range(len(view.servers))
        ]
        if not any(p.hollow or p.solid for p in pairs):
            continue
        reach = max([0.05, *(abs(v - 1) for p in pairs for v in (*p.hollow, *p.solid))]) * 1.15
        words = f"{row.label} relative to the mean of the servers. " + "; ".join(
            f"{s.address}: published {ratio(a)}, measured {ratio(b)}"
            for s, a, b in zip(view.servers, theirs, ours, strict=True)
        )
        svg = small_charts.dumbbells(
            pairs,
            domain=(max(0.0, 1 - reach), 1 + reach),
            reference=1.0,
            tick_format=".2f",
            axis=None,
            key=f"history-{len(made)}",
            title=words,
            width=272,
        )
        made.append(Drawing(words, Markup(svg), heading=row.label))
    return tuple(made)


def _known(shape: float | None) -> tuple[float, ...]:
    return () if shape is None else (shape,)
