"""Sockets by state over time, as `ss -s` counts them: one chart for each server's median trial."""

from __future__ import annotations

from markupsafe import Markup

from prony.evidence.host import HostRow
from prony.report.cell_view import CellView, TrialView
from prony.report.html.drawings import Drawer, Drawing
from prony.report.html.marks import drawn
from prony.report.html.plot import Plot, count_axis, seconds_axis
from prony.report.html.small_charts import MOST_POINTS, WIDTH
from prony.report.html.theme import ACCENTS
from prony.report.wording import number

STATES = (
    ("sockets", "total"),
    ("established", "established"),
    ("closed", "closed"),
    ("orphaned", "orphaned"),
    ("time_wait", "timewait"),
)
"""A field of a row and its name in `ss -s`, in the order of the colours."""
HEIGHT = 120


def legend() -> list[tuple[str, Markup]]:
    """Each state with a swatch of its colour."""
    return [(name, drawn("M-6-1.5H6v3H-6z", ACCENTS[at].light)) for at, (_, name) in enumerate(STATES)]


def sockets(drawer: Drawer) -> list[Drawing]:
    """For each server its median trial (one that does not conform where no other is left); where it has
    several cells, of the cell with most sockets: a part may have too many cells to show all.
    """
    made: list[Drawing] = []
    for server in drawer.part.servers:
        cells = [cell for cell in drawer.part.of(server.address) if _most(cell)]
        if cells:
            cell = max(cells, key=_most)
            several = len(drawer.part.cells) > len(drawer.part.servers)
            name = f"{server.address}, {cell.cell.trial.workload.name}, {cell.cell.trial.load_name}"
            rows = counted_rows(_drawn_trial(cell))
            place = drawer.places[server.address]
            key = f"{drawer.key}sockets-{len(made)}"
            made.append(_drawing(name if several else server.address, place, rows, key))
    return made


def _drawn_trial(cell: CellView) -> TrialView | None:
    return cell.median_trial or next(iter(cell.trials), None)


def _most(cell: CellView) -> int:
    """The highest count in the trial that is drawn; 0 when there are not two rows to draw a line through."""
    rows = counted_rows(_drawn_trial(cell))
    return max(row.sockets or row.established or 0 for row in rows) if len(rows) > 1 else 0


def counted_rows(trial: TrialView | None) -> list[HostRow]:
    """Rows with a count, at most MOST_POINTS of them: sockets are a level, so every n-th will do."""
    known = [] if trial is None else [r for r in trial.record.evidence.host_rows if r.established is not None]
    return known[:: max(1, -(-len(known) // MOST_POINTS))]


def _drawing(heading: str, place: int, rows: list[HostRow], key: str) -> Drawing:
    """The chart of one trial; `place` is that of its server."""
    counts = {
        name: [(row.t_ms / 1000, n) for row in rows if (n := getattr(row, field)) is not None]
        for field, name in STATES
    }
    told = [f"{name} {number(of[0][1])} to {number(of[-1][1])}" for name, of in counts.items() if of]
    most = max(n for of in counts.values() for _, n in of)
    until_s = max(rows[-1].t_ms / 1000, 1.0)
    words = f"{heading}: TCP sockets over {number(until_s)} s, first to last: " + ", ".join(told)
    plot = Plot(seconds_axis(until_s), count_axis(max(most * 1.08, 3)), width=WIDTH, height=HEIGHT)
    for colour, points in zip(ACCENTS, counts.values(), strict=False):
        plot.line(points, colour, 1.75)
    svg = Markup(plot.svg(key=key, title=words))
    return Drawing(words, svg, heading=heading, server=place, note="median trial")
