"""Charts of a part: the values of each, and its text alternative."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from prony.evidence.host import HostRow
from prony.judge.figures import published_mark
from prony.report.blocks import Picture
from prony.report.cell_view import HEADLINE, CellView, TrialView
from prony.report.history import history
from prony.report.html import charts
from prony.report.html.plot import Plot, Series, count_axis, seconds_axis
from prony.report.html.theme import ACCENTS, accent, drawn, shape
from prony.report.labels import label_of, named, rounded
from prony.report.result import PartView
from prony.report.wording import join, number, ratio
from prony.steady.detector import change_points_ms

WIDE, NARROW = 860, 372
"""Widths in CSS pixels for which the large charts are laid out; the page picks one by its own width."""
MIDDLE, HEIGHT = 420, 230
"""Width and plot-area height, in CSS pixels, of charts in the two-column grid."""
FAR = 3.0
"""Ceilings above this multiple of the highest rate are in words: they would flatten the chart."""
STARTING = (
    "time_to_ready_s",
    "jvm_memory_used_mb",
    "jvm_classes_loaded",
    "jvm_threads_live",
    "time_to_steady_s",
    "peak_rss_mib",
)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart: `narrow` is None if the wide one fits a phone."""

    words: str
    wide: Markup
    narrow: Markup | None = None
    heading: str = ""
    server: int | None = None
    """Place of the server whose colour goes with the heading."""
    note: str = ""


def image(picture: Picture) -> Drawing:
    """A stored drawing as an image, in which no script runs: the result may be imported."""
    coded = b64encode(picture.svg.encode()).decode()
    shown = '<img alt="{}" style="width:100%;background:#fff" src="data:image/svg+xml;base64,{}">'
    return Drawing(picture.words, Markup(shown).format(picture.words, coded))


@dataclass(frozen=True, slots=True)
class Drawer:
    """A part, each server's position on the page (its colour and mark), and a prefix for ids."""

    part: PartView
    places: Mapping[str, int]
    key: str = ""
    _made: list[str] = field(default_factory=list)

    def latency(self, cells: Sequence[CellView], where: str = "") -> Drawing | None:
        """Service time (of an open loop: latency), as far as each trial's sample supports it."""
        curves: list[charts.Curve] = []
        per_server: list[str] = []
        for cell in cells:
            middle = cell.median_trial
            for trial in cell.counting:
                points = charts.percentiles(trial)
                if len(points) > 1:
                    curves.append(charts.Curve(self.series(cell), points, trial is middle))
            if middle is not None:
                per_server.append(f"{cell.cell.server}: {charts.latency_words(middle)}")
        if not any(curve.main for curve in curves):
            return None
        times = "Latency" if any(cell.cell.trial.load.model == "open" for cell in cells) else "Service time"
        heading = f"{times} by percentile{f', {where}' if where else ''}"
        words = f"{heading}, median trial of each server. " + "; ".join(per_server)

        def draw(width: int, height: int, key: str) -> str:
            return charts.latency(curves, width=width, height=height, key=key, title=words)

        if where:
            key = self.identifier("times")
            return Drawing(words, Markup(draw(MIDDLE, HEIGHT, key)), heading=heading)
        return self.both("latency", words, lambda w, key: draw(w, 340 if w == WIDE else 280, key))

    def throughput(self, *, all_of_them: bool = True) -> list[Drawing]:
        """A small chart per trial, or per cell's median trial, on common axes."""
        shown = [(cell, cell.every if all_of_them else _typical(cell)) for cell in self.part.cells]
        drawn = [t for _, trials in shown for t in trials if charts.interval_rows(t)]
        if not drawn:
            return []
        until_s = max(1.0, *(charts.interval_rows(trial)[-1].t_ms / 1000 for trial in drawn))
        most = max(
            1.0, *(row.completed_per_s * 1.08 for trial in drawn for row in charts.interval_rows(trial))
        )
        return [
            self._throughput(cell, trial, until_s, most)
            for cell, trials in shown
            for trial in trials
            if charts.interval_rows(trial)
        ]

    def _throughput(self, cell: CellView, trial: TrialView, until_s: float, most_per_s: float) -> Drawing:
        evidence, rows = trial.record.evidence, charts.interval_rows(trial)
        mark = published_mark(evidence)
        rate = trial.figure(HEADLINE)
        block = f"{'control' if trial.record.kind == 'control' else 'block'} {trial.record.block + 1}"
        conforms = "conforms" if trial.conforms else "does not conform"
        shown = f"{rounded(HEADLINE, rate)}/s" if trial.counts and rate is not None else "no figure"
        after = (
            f"; {number(mark.requests)} requests after {number(mark.elapsed_ms / 1000, 1)} s" if mark else ""
        )
        words = (
            f"{cell.label}, {block}, {conforms}: requests per second over {number(until_s)} s; "
            f"first second {number(rows[0].completed_per_s)}/s, window {shown}{after}"
        )

        changes_s = [ms / 1000 for ms in change_points_ms(evidence.engine.rows if evidence.engine else ())]

        def draw(width: int, key: str) -> str:
            return charts.throughput(
                charts.thinned(trial),
                series=self.series(cell),
                phases=[(p.name, p.start_ms / 1000, p.end_ms / 1000) for p in evidence.phases],
                changes_s=changes_s,
                mark_s=charts.mark_s(trial),
                until_s=until_s,
                most_per_s=most_per_s,
                key=key,
                title=words,
                width=width,
            )

        if len(self.part.trials) == 1:
            return self.both("over", words, draw)
        place, svg = self.places[cell.cell.server], Markup(draw(charts.WIDTH, self.identifier("over")))
        return Drawing(words, svg, heading=f"{cell.label}, {block}", server=place, note=shown)

    def start_up(self) -> list[Drawing]:
        made: list[Drawing] = []
        for figure in STARTING:
            rows = []
            medians = []
            for cell in self.part.cells:
                dots = tuple(v for t in cell.counting if (v := t.figure(figure)) is not None and v >= 0)
                spread = cell.figure(figure)
                words = rounded(figure, spread.median if spread else None)
                middle = spread.median if spread else None
                rows.append(charts.Dots(self.series(cell), dots, middle, words))
                medians.append(f"{cell.cell.server} {words}")
            if any(row.values for row in rows):
                words = f"{named(figure)}, medians: {join(medians)}"
                svg = charts.strips(rows, key=self.identifier("start"), title=words)
                made.append(Drawing(words, Markup(svg), heading=named(figure)))
        return made

    def cpu(self) -> Drawing | None:
        """A row per server, a pair of marks per trial, also of those that do not conform."""
        rows = []
        per_cell = []
        for cell in self.part.cells:
            client = tuple(v for t in cell.trials if (v := t.figure("client_cpu_share")) is not None)
            busy = tuple(v for t in cell.trials if (v := t.figure("server_cpu_share")) is not None)
            if client or busy:
                rows.append(charts.PairedSeries(self.series(cell), client, busy))
                shares = f"server {charts.percents(busy)} of its CPUs, client {charts.percents(client)}"
                per_cell.append(f"{cell.label}: {shares}")
        if not rows:
            return None
        words = "CPU in use over the window, a value per trial. " + "; ".join(per_cell)
        most = max([1.0, *(v for r in rows for v in (*r.hollow, *r.solid))])
        return self.both(
            "cpu",
            words,
            lambda w, key: charts.dumbbells(
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
                charts.PairedSeries(self.series(cell), charts.known(a), charts.known(b))
                for cell, a, b in zip(self.part.cells, theirs, ours, strict=True)
            ]
            if not any(p.hollow or p.solid for p in pairs):
                continue
            reach = max([0.05, *(abs(v - 1) for p in pairs for v in (*p.hollow, *p.solid))]) * 1.15
            words = f"{label_of(row.figure)} relative to the mean of the servers. " + "; ".join(
                f"{cell.cell.server}: published {ratio(a)}, measured {ratio(b)}"
                for cell, a, b in zip(self.part.cells, theirs, ours, strict=True)
            )
            svg = charts.dumbbells(
                pairs,
                domain=(max(0.0, 1 - reach), 1 + reach),
                reference=1.0,
                tick_format=".2f",
                axis=None,
                key=self.identifier("history"),
                title=words,
                width=charts.WIDTH,
            )
            made.append(Drawing(words, Markup(svg), heading=label_of(row.figure)))
        return made

    def questions(self) -> dict[str, list[CellView]]:
        """Cells of the same question: all servers under a workload and load; none of a sweep."""
        by_load: dict[str, list[CellView]] = {}
        if not self.part.swept:
            for view in self.part.cells:
                trial = view.cell.trial
                load = "" if self.part.part.follows else f", {trial.load_name}"
                by_load.setdefault(f"{trial.workload.name}{load}", []).append(view)
        return by_load

    def bounds(self) -> list[Drawing]:
        """A chart per workload and load whose rate has a known ceiling."""
        made: list[Drawing] = []
        for where, cells in self.questions().items():
            loads = [trial.record.evidence.load for cell in cells for trial in cell.trials]
            offers = {load.offered_per_s for load in loads if load.offered_per_s}
            offered = offers.pop() if len(offers) == 1 else None
            limits = [charts.known_ceilings(cell) for cell in cells]
            highest = max([r for cell in cells for r in charts.rates(cell)], default=0.0)
            declared = any(trial.record.evidence.ceilings for cell in cells for trial in cell.trials)
            if highest <= 0 or not (offered or declared):
                continue
            rows = [
                charts.CeilingRow(
                    series=self.series(cell),
                    values=charts.rates(cell),
                    middle=None if (spread := cell.figure(HEADLINE)) is None else spread.median,
                    ceilings=tuple((name, at) for name, at in known if at <= FAR * highest),
                )
                for cell, known in zip(cells, limits, strict=True)
            ]
            shown = offered if offered is not None and offered <= FAR * highest else None
            heading = f"Throughput and its ceilings, {where}"
            words = f"{heading}. " + "; ".join(
                charts.bound_words(cell, known) for cell, known in zip(cells, limits, strict=True)
            )
            if offered is not None:
                words += f". Offered: {number(offered)}/s"
            svg = charts.ceilings(
                rows, offered_per_s=shown, width=MIDDLE, key=self.identifier("bounds"), title=words
            )
            note = f"dashed: {number(offered)}/s offered" if shown is not None else ""
            made.append(Drawing(words, Markup(svg), heading=heading, note=note))
        return made

    def times(self) -> list[Drawing]:
        drawings = (self.latency(cells, where) for where, cells in self.questions().items())
        return [drawing for drawing in drawings if drawing is not None]

    def series(self, cell: CellView) -> Series:
        place = self.places[cell.cell.server]
        return Series(cell.cell.server, accent(place), shape(place))

    def identifier(self, kind: str) -> str:
        """Unique on the page."""
        self._made.append(kind)
        return f"{self.key}{kind}-{self._made.count(kind) - 1}"

    def both(self, name: str, words: str, draw: Callable[[int, str], str]) -> Drawing:
        wide, narrow = (Markup(draw(w, f"{self.key}{name}-{n}")) for w, n in ((WIDE, "w"), (NARROW, "n")))
        return Drawing(words, wide, narrow)


def _typical(cell: CellView) -> tuple[TrialView, ...]:
    return (cell.median_trial,) if cell.median_trial is not None else cell.every[:1]


STATES = (
    ("sockets", "total"),
    ("established", "established"),
    ("closed", "closed"),
    ("orphaned", "orphaned"),
    ("time_wait", "timewait"),
)
"""A field of a row and its name in `ss -s`, in the order of the colours."""


def socket_states() -> list[tuple[str, Markup]]:
    """Each state with a swatch of its colour."""
    return [(name, drawn("M-6-1.5H6v3H-6z", ACCENTS[at].light)) for at, (_, name) in enumerate(STATES)]


def sockets(drawer: Drawer) -> list[Drawing]:
    """Of each server's median trial, in the cell with most sockets."""
    made: list[Drawing] = []
    for server in drawer.part.servers:
        cells = [cell for cell in drawer.part.of(server.address) if _most_sockets(cell)]
        if cells:
            cell = max(cells, key=_most_sockets)
            several = len(drawer.part.cells) > len(drawer.part.servers)
            name = f"{server.address}, {cell.cell.trial.workload.name}, {cell.cell.trial.load_name}"
            rows = counted_rows(_drawn_trial(cell))
            place = drawer.places[server.address]
            key = f"{drawer.key}sockets-{len(made)}"
            made.append(_socket_chart(name if several else server.address, place, rows, key))
    return made


def _drawn_trial(cell: CellView) -> TrialView | None:
    return cell.median_trial or next(iter(cell.trials), None)


def _most_sockets(cell: CellView) -> int:
    """0 without two rows to draw a line through."""
    rows = counted_rows(_drawn_trial(cell))
    return max(row.sockets or row.established or 0 for row in rows) if len(rows) > 1 else 0


def counted_rows(trial: TrialView | None) -> list[HostRow]:
    """At most charts.MOST_POINTS: sockets are a level, so every n-th will do."""
    known = [] if trial is None else [r for r in trial.record.evidence.host_rows if r.established is not None]
    return known[:: max(1, -(-len(known) // charts.MOST_POINTS))]


def _socket_chart(heading: str, place: int, rows: list[HostRow], key: str) -> Drawing:
    counts = {
        name: [(row.t_ms / 1000, n) for row in rows if (n := getattr(row, field)) is not None]
        for field, name in STATES
    }
    ranges = [f"{name} {number(of[0][1])} to {number(of[-1][1])}" for name, of in counts.items() if of]
    most = max(n for of in counts.values() for _, n in of)
    until_s = max(rows[-1].t_ms / 1000, 1.0)
    words = f"{heading}: TCP sockets over {number(until_s)} s, first to last: " + ", ".join(ranges)
    plot = Plot(
        seconds_axis(until_s), count_axis(max(most * 1.08, 3)), width=charts.WIDTH, height=charts.HEIGHT
    )
    for colour, points in zip(ACCENTS, counts.values(), strict=False):
        plot.line(points, colour, 1.75)
    svg = Markup(plot.svg(key=key, title=words))
    return Drawing(words, svg, heading=heading, server=place, note="median trial")
