"""From a part to its charts: which values each one shows, and the same in words for who cannot see.

Must not know the page around a chart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from prony.judge.figures import published_mark
from prony.report.cells_table import printed
from prony.report.comparison import better_first, history, spread_of, value, verdict_word
from prony.report.html import large_charts, small_charts, values
from prony.report.html.capacity_chart import TriedMark, capacity_chart
from prony.report.html.ceiling_chart import CeilingRow, ceilings
from prony.report.html.plot import Series
from prony.report.html.sweep_chart import SweepLine, sweep
from prony.report.html.theme import accent, shape
from prony.report.labels import label_of, named, rounded, unit_of
from prony.report.result import HEADLINE, CellView, PairView, PartView, TrialView
from prony.report.wording import number, ratio
from prony.report.words import join

WIDE, NARROW = 760, 372
"""Widths in CSS pixels for which the large charts are laid out; the page picks one by its own width."""
MIDDLE, HEIGHT = 430, 230
"""Of the charts that stand beside each other."""
FAR = 3.0
"""A ceiling of more than this many times the highest rate would only flatten the chart: words tell of it."""
CURVE_POINTS = 120
STARTING = (
    "time_to_ready_s",
    "jvm_memory_used_mb",
    "jvm_classes_loaded",
    "jvm_threads_live",
    "time_to_steady_s",
    "peak_rss_mib",
)
SWEPT = ((HEADLINE, False), ("mean_ms", True), ("p99_ms", True))
"""What is drawn over users, and whether on a log axis."""


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


@dataclass(frozen=True, slots=True)
class Drawer:
    """One part, the place of each server on the page (its colour and mark), and a prefix for ids."""

    part: PartView
    places: Mapping[str, int]
    key: str = ""
    _made: list[str] = field(default_factory=list)

    def ratios(self, *, headline: bool) -> Drawing | None:
        """Intervals of the ratios: of the figure that the part asks for, or of every other one."""
        asked = self._asked
        pairs = [pair for pair in self.part.pairs if (pair.figure == asked) is headline]
        rows = [_ratio_row(pair, plain=headline) for pair in map(better_first, pairs)]
        drawn = [row for row in rows if row is not None]
        if not drawn:
            return None
        what = f"{label_of(asked)} of the first ÷ the second" if headline else "first ÷ second"
        words = "Ratios with their intervals. " + "; ".join(f"{row.label}: {row.words}" for row in drawn)
        band = (1 / (1 + self.part.part.band), 1 + self.part.part.band)
        return self._both(
            "ratios" if headline else "other",
            words,
            lambda w, key: large_charts.forest(
                drawn, band=band, axis=f"{what}, log scale", width=w, key=key, title=words
            ),
        )

    def latency(self, cells: Sequence[CellView], where: str = "") -> Drawing | None:
        """Service time (of an open loop: latency) by percentile: the median trial of each server thick, up to
        the highest percentile that each trial's sample supports.
        """
        curves: list[large_charts.Curve] = []
        told: list[str] = []
        for cell in cells:
            middle = cell.median_trial
            for trial in cell.counting:
                points = values.percentiles(trial)
                if len(points) > 1:
                    curves.append(large_charts.Curve(self._series(cell), points, trial is middle))
            if middle is not None:
                told.append(f"{cell.cell.server}: {values.latency_words(middle)}")
        if not any(curve.main for curve in curves):
            return None
        times = "Latency" if self.part.is_open else "Service time"
        heading = f"{times} by percentile{f', {where}' if where else ''}"
        words = f"{heading}, median trial of each server. " + "; ".join(told)

        def draw(width: int, height: int, key: str) -> str:
            return large_charts.latency(curves, width=width, height=height, key=key, title=words)

        if where:
            key = self._id("times")
            return Drawing(words, Markup(draw(MIDDLE, HEIGHT, key)), heading=heading)
        return self._both("latency", words, lambda w, key: draw(w, 340 if w == WIDE else 280, key))

    def throughput(self) -> list[Drawing]:
        """One small chart per trial, on common axes, in the order of servers and blocks."""
        drawn = [t for cell in self.part.cells for t in cell.every if values.interval_rows(t)]
        if not drawn:
            return []
        until_s = max(1.0, *(values.interval_rows(trial)[-1].t_ms / 1000 for trial in drawn))
        most = max(
            1.0, *(row.completed_per_s * 1.08 for trial in drawn for row in values.interval_rows(trial))
        )
        return [
            self._throughput(cell, trial, until_s, most)
            for cell in self.part.cells
            for trial in cell.every
            if values.interval_rows(trial)
        ]

    def _throughput(self, cell: CellView, trial: TrialView, until_s: float, most_per_s: float) -> Drawing:
        evidence, rows = trial.record.evidence, values.interval_rows(trial)
        mark = published_mark(evidence)
        rate = trial.figure(HEADLINE)
        block = f"{'control' if trial.record.kind == 'control' else 'block'} {trial.record.block + 1}"
        verdict = "rejected" if trial.rejected_because else trial.judgement.verdict.value
        shown = f"{rounded(HEADLINE, rate)}/s" if trial.counts and rate is not None else "no figure"
        after = (
            f"; {number(mark.requests)} requests after {number(mark.elapsed_ms / 1000, 1)} s" if mark else ""
        )
        words = (
            f"{cell.label}, {block}, {verdict}: requests per second over {number(until_s)} s; "
            f"first second {number(rows[0].completed_per_s)}/s, window {shown}{after}"
        )
        svg = small_charts.throughput(
            values.thinned(trial),
            series=self._series(cell),
            phases=[
                small_charts.Stretch(p.name, p.start_ms / 1000, p.end_ms / 1000) for p in evidence.phases
            ],
            changes_s=[ms / 1000 for ms in trial.change_points_ms],
            mark_s=mark.elapsed_ms / 1000 if mark else None,
            until_s=until_s,
            most_per_s=most_per_s,
            key=self._id("over"),
            title=words,
        )
        note = shown if verdict == "valid" else f"{shown}, {verdict}"
        place = self.places[cell.cell.server]
        return Drawing(words, Markup(svg), heading=f"{cell.label}, {block}", server=place, note=note)

    def start_up(self) -> list[Drawing]:
        """A strip of dots per figure of start-up and memory."""
        made: list[Drawing] = []
        for figure in STARTING:
            rows = []
            told = []
            for cell in self.part.cells:
                dots = tuple(v for t in cell.counting if (v := value(t, figure)) is not None and v >= 0)
                found = spread_of(cell, figure)
                words = rounded(figure, found.median if found else None)
                middle = found.median if found else None
                rows.append(small_charts.Dots(self._series(cell), dots, middle, words))
                told.append(f"{cell.cell.server} {words}")
            if any(row.values for row in rows):
                words = f"{named(figure)}, medians: {join(told)}"
                svg = small_charts.strips(rows, key=self._id("start"), title=words)
                made.append(Drawing(words, Markup(svg), heading=named(figure)))
        return made

    def cpu(self) -> Drawing | None:
        """How busy server and client were over the window: a row per server, a pair of marks per trial.

        Rejected trials are shown too: who was busy is often why they were rejected.
        """
        rows = []
        told = []
        for cell in self.part.cells:
            client = tuple(v for t in cell.trials if (v := value(t, "client_cpu_share")) is not None)
            busy = tuple(v for t in cell.trials if (v := value(t, "server_cpu_share")) is not None)
            if client or busy:
                rows.append(small_charts.PairedSeries(self._series(cell), client, busy))
                said = f"server {values.percents(busy)} of its CPUs, client {values.percents(client)}"
                told.append(f"{cell.label}: {said}")
        if not rows:
            return None
        words = "CPU in use over the window, a value per trial. " + "; ".join(told)
        most = max([1.0, *(v for r in rows for v in (*r.hollow, *r.solid))])
        return self._both(
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

    def published(self) -> list[Drawing]:
        """Per figure: the servers relative to their mean, as published (hollow) and as measured (solid)."""
        made: list[Drawing] = []
        for row in history(self.part):
            theirs, ours = row.published_shape, row.measured_shape
            pairs = [
                small_charts.PairedSeries(self._series(cell), values.known(a), values.known(b))
                for cell, a, b in zip(self.part.cells, theirs, ours, strict=True)
            ]
            if not any(p.hollow or p.solid for p in pairs):
                continue
            reach = max([0.05, *(abs(v - 1) for p in pairs for v in (*p.hollow, *p.solid))]) * 1.15
            words = f"{row.label} relative to the mean of the servers. " + "; ".join(
                f"{cell.cell.server}: published {ratio(a)}, measured {ratio(b)}"
                for cell, a, b in zip(self.part.cells, theirs, ours, strict=True)
            )
            svg = small_charts.dumbbells(
                pairs,
                domain=(max(0.0, 1 - reach), 1 + reach),
                reference=1.0,
                tick_format=".2f",
                axis=None,
                key=self._id("history"),
                title=words,
                width=272,
            )
            made.append(Drawing(words, Markup(svg), heading=row.label))
        return made

    def questions(self) -> dict[str, list[CellView]]:
        """Cells that answer the same question: all servers under one workload and load; none of a sweep."""
        found: dict[str, list[CellView]] = {}
        if not self.part.swept:
            for view in self.part.cells:
                trial = view.cell.trial
                load = "" if self.part.part.follows else f", {trial.load_name}"
                found.setdefault(f"{trial.workload.name}{load}", []).append(view)
        return found

    def bounds(self) -> list[Drawing]:
        """A chart for each workload and load whose rate is bounded by something that is known beforehand."""
        made: list[Drawing] = []
        for where, cells in self.questions().items():
            loads = [trial.record.evidence.load for cell in cells for trial in cell.trials]
            offers = {load.offered_per_s for load in loads if load.offered_per_s}
            offered = offers.pop() if len(offers) == 1 else None
            limits = [values.ceilings(cell) for cell in cells]
            highest = max([r for cell in cells for r in values.rates(cell)], default=0.0)
            declared = any(trial.record.evidence.ceilings for cell in cells for trial in cell.trials)
            if highest <= 0 or not (offered or declared):
                continue
            rows = [
                CeilingRow(
                    series=self._series(cell),
                    values=values.rates(cell),
                    middle=None if (found := cell.figure(HEADLINE)) is None else found.median,
                    ceilings=tuple((name, at) for name, at in known if at <= FAR * highest),
                )
                for cell, known in zip(cells, limits, strict=True)
            ]
            shown = offered if offered is not None and offered <= FAR * highest else None
            heading = f"Throughput and its ceilings, {where}"
            words = f"{heading}. " + "; ".join(
                values.bound_words(cell, known) for cell, known in zip(cells, limits, strict=True)
            )
            if offered is not None:
                words += f". Offered: {number(offered)}/s"
            svg = ceilings(rows, offered_per_s=shown, width=MIDDLE, key=self._id("bounds"), title=words)
            note = f"dashed: {number(offered)}/s offered" if shown is not None else ""
            made.append(Drawing(words, Markup(svg), heading=heading, note=note))
        return made

    def times(self) -> list[Drawing]:
        """Times by percentile for each workload and load of a part that does not sweep over users."""
        found = (self.latency(cells, where) for where, cells in self.questions().items())
        return [drawing for drawing in found if drawing is not None]

    def sweeps(self) -> list[Drawing]:
        """A chart per workload, think time and figure of a part with several numbers of users."""
        groups: dict[tuple[str, float], list[CellView]] = {}
        for cell in self.part.cells:
            if cell.users is not None:
                trial = cell.cell.trial
                key = (trial.workload.name, trial.load.think.expected_ms)
                groups.setdefault(key, []).append(cell)
        made: list[Drawing] = []
        for (workload, think_ms), cells in groups.items():
            for figure, logarithmic in SWEPT:
                lines = self._lines(cells, figure)
                if max((len(line.points) for line in lines if not line.dashed), default=0) < 2:
                    continue
                pause = f", think time {think_ms:g} ms" if think_ms else ""
                name = f"{label_of(figure)} over users, {workload}{pause}"
                made.append(self._sweep(name, figure, lines, logarithmic, MIDDLE, HEIGHT))
        return made

    def _lines(self, cells: Sequence[CellView], figure: str) -> list[SweepLine]:
        found: list[SweepLine] = []
        for server in dict.fromkeys(cell.cell.server for cell in cells):
            own = sorted((c for c in cells if c.cell.server == server), key=lambda c: c.users or 0)
            series = self._series(own[0])
            points = tuple((c.users, s.median) for c in own if c.users and (s := c.figure(figure)))
            if points:
                found.append(SweepLine(series, points))
            labels = dict.fromkeys(
                one.label for c in own for one in c.cell.published if figure in one.figures
            )
            for label in labels:
                theirs = tuple(
                    (c.users, one.figures[figure])
                    for c in own
                    for one in c.cell.published
                    if c.users and one.label == label and figure in one.figures
                )
                if len(theirs) > 1:
                    named_series = Series(f"{server}, {label}", series.colour, series.shape)
                    found.append(SweepLine(named_series, theirs, dashed=True))
        return found

    def law(self) -> Drawing | None:
        """Throughput over users with the fitted law: a dot per trial that counts."""
        lines = []
        for server in self.part.servers:
            cells = sorted(self.part.of(server.address), key=lambda cell: cell.users or 0)
            dots = tuple((c.users, rate) for c in cells if c.users for rate in values.rates(c))
            law = self.part.laws.get(server.address)
            if dots:
                span = np.geomspace(dots[0][0], dots[-1][0], CURVE_POINTS) if law is not None else ()
                curve = tuple((float(n), law.per_s(float(n))) for n in span) if law is not None else ()
                lines.append(SweepLine(self._series(cells[0]), dots, curve=curve, joined=False))
        if not lines:
            return None
        return self._sweep("requests/s over users", HEADLINE, lines, False, WIDE, 320)

    def _sweep(
        self, name: str, figure: str, lines: Sequence[SweepLine], logarithmic: bool, width: int, height: int
    ) -> Drawing:
        unit = unit_of(figure)
        words = f"{name}. " + "; ".join(_sweep_words(figure, line) for line in lines)
        svg = sweep(
            lines,
            axis=f"{label_of(figure)}{f', {unit}' if unit else ''}",
            logarithmic=logarithmic,
            width=width,
            height=height,
            key=self._id("sweep"),
            title=words,
        )
        return Drawing(words, Markup(svg), heading=name)

    def capacity(self) -> Drawing | None:
        """Measured ÷ allowed over the offered rate, by outcome."""
        tried = self.part.search.tried if self.part.search is not None else ()
        marks = [TriedMark(t.rate_per_s, t.pressure, t.outcome) for t in tried if t.pressure is not None]
        if not marks:
            return None
        words = "Measured ÷ allowed by offered rate. " + "; ".join(
            f"{number(one.rate_per_s)}/s: {number(one.pressure * 100)} %, {one.outcome.value}"
            for one in marks
        )
        svg = capacity_chart(marks, width=WIDE, height=320, key=self._id("capacity"), title=words)
        return Drawing(words, Markup(svg))

    @property
    def _asked(self) -> str:
        return "p99_ms" if self.part.is_open else HEADLINE

    def _series(self, cell: CellView) -> Series:
        place = self.places[cell.cell.server]
        return Series(cell.cell.server, accent(place), shape(place))

    def _id(self, kind: str) -> str:
        """Unique on the page."""
        self._made.append(kind)
        return f"{self.key}{kind}-{self._made.count(kind) - 1}"

    def _both(self, name: str, words: str, draw: Callable[[int, str], str]) -> Drawing:
        wide, narrow = (Markup(draw(w, f"{self.key}{name}-{n}")) for w, n in ((WIDE, "w"), (NARROW, "n")))
        return Drawing(words, wide, narrow)


def _ratio_row(pair: PairView, *, plain: bool) -> large_charts.RatioRow | None:
    if pair.ratio is None or pair.low is None or pair.high is None or pair.low <= 0:
        return None
    figure = "" if plain else f"{label_of(pair.figure)}: "
    return large_charts.RatioRow(
        label=f"{figure}{pair.a} ÷ {pair.b}",
        ratio=pair.ratio,
        low=pair.low,
        high=pair.high,
        words=f"{verdict_word(pair)}  {ratio(pair.ratio)} [{ratio(pair.low)}, {ratio(pair.high)}]",
        conclusive=pair.verdict != "inconclusive",
    )


def _sweep_words(figure: str, line: SweepLine) -> str:
    text = printed if line.dashed else rounded
    points = ", ".join(f"{users:,} users {text(figure, found)}" for users, found in line.points)
    return f"{line.series.label}: {points}"
