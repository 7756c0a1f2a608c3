"""Sockets by state over time, as `ss -s` counts them: one chart for each server's median trial.

Must not know the page around a chart.
"""

from __future__ import annotations

import altair as alt
from markupsafe import Markup

from prony.evidence.host import HostRow
from prony.report.html.drawings import MOST_POINTS, Drawing
from prony.report.html.plot import data, round_step, to_svg
from prony.report.html.small_charts import THOUSANDS, TIME_UNITS
from prony.report.html.theme import ACCENTS
from prony.report.model import ExperimentView, TrialView
from prony.report.summary import median_trial
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


def sockets(view: ExperimentView) -> tuple[Drawing, ...]:
    """A chart per server whose trial was sampled; a rejected trial where no other is left."""
    made: list[Drawing] = []
    for place, server in enumerate(view.servers):
        trial = median_trial(view, server.address) or next(iter(view.of(server.address)), None)
        rows = counted_rows(trial)
        if len(rows) > 1:
            made.append(drawn(server.address, place, rows, f"sockets-{place}"))
    return tuple(made)


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
    unit, unit_s = next((u, s) for u, s in TIME_UNITS if until_s >= 3 * s or s == 1)
    step = round_step(until_s / unit_s / 4) * unit_s
    rise = round_step(max(most, 3) / 3)
    chart = (
        alt.Chart(data(lines))
        .mark_line(strokeWidth=1.75, strokeJoin="round", clip=True)
        .encode(
            x=alt.X(
                "t:Q",
                scale=alt.Scale(domain=[0, until_s], nice=False),
                axis=alt.Axis(
                    values=[k * step for k in range(int(until_s / step) + 1)],
                    grid=False,
                    title=None,
                    labelExpr=f"format(datum.value / {unit_s}, '~r') + ' {unit}'",
                    labelFlush=True,
                ),
            ),
            y=alt.Y(
                "n:Q",
                scale=alt.Scale(domain=[0, max(most * 1.08, 1.0)], nice=False),
                axis=alt.Axis(
                    title=None,
                    values=[k * rise for k in range(int(max(most, 3) / rise) + 1)],
                    labelExpr=THOUSANDS,
                ),
            ),
            detail="state:N",
            stroke=alt.Stroke("colour:N", scale=None),
            order="t:Q",
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    svg = Markup(to_svg(chart, key=key, title=words))
    return Drawing(words, svg, heading=heading, server=place, note="median trial")
