"""Sockets by state over time, as `ss -s` counts them: one chart for each server's median trial."""

from __future__ import annotations

import altair as alt
from markupsafe import Markup

from prony.evidence.host import HostRow
from prony.report.cell_view import CellView, TrialView
from prony.report.html.drawings import Drawer, Drawing
from prony.report.html.plot import count_axis, data, seconds_axis, to_svg
from prony.report.html.small_charts import MOST_POINTS
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
WIDTH, HEIGHT = 244, 120


def legend() -> list[tuple[str, Markup]]:
    """Each state with a swatch of its colour."""
    swatch = (
        '<svg class="mark" width="11" height="11" viewBox="0 0 12 12" aria-hidden="true">'
        '<path d="M0 4.5h12v3H0z" fill="{}"/></svg>'
    )
    return [(name, Markup(swatch.format(ACCENTS[place].light))) for place, (_, name) in enumerate(STATES)]


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
            made.append(drawn(name if several else server.address, place, rows, key))
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


def drawn(heading: str, place: int, rows: list[HostRow], key: str) -> Drawing:
    """The chart of one trial; `place` is that of its server."""
    lines: list[dict[str, object]] = []
    told = []
    for at, (field, name) in enumerate(STATES):
        counts = [(row.t_ms / 1000, getattr(row, field)) for row in rows if getattr(row, field) is not None]
        lines += [{"t": t, "n": n, "state": name, "colour": ACCENTS[at].light} for t, n in counts]
        if counts:
            told.append(f"{name} {number(counts[0][1])} to {number(counts[-1][1])}")
    most = max(int(str(line["n"])) for line in lines)
    until_s = max(rows[-1].t_ms / 1000, 1.0)
    words = f"{heading}: TCP sockets over {number(until_s)} s, first to last: " + ", ".join(told)
    chart = (
        alt.Chart(data(lines))
        .mark_line(strokeWidth=1.75, strokeJoin="round", clip=True)
        .encode(
            x=alt.X(
                "t:Q",
                scale=alt.Scale(domain=[0, until_s], nice=False),
                axis=seconds_axis(until_s),
            ),
            y=alt.Y(
                "n:Q",
                scale=alt.Scale(domain=[0, max(most * 1.08, 1.0)], nice=False),
                axis=count_axis(max(most, 3)),
            ),
            detail="state:N",
            stroke=alt.Stroke("colour:N", scale=None),
            order="t:Q",
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    svg = Markup(to_svg(chart, key=key, title=words))
    return Drawing(words, svg, heading=heading, server=place, note="median trial")
