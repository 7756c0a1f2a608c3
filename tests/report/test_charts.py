"""Charts: marks stand where their values are, in the colour and shape of their server; labels are legible."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest

from prony.compare.capacity import Outcome
from prony.report.html.charts import (
    CeilingRow,
    Curve,
    Dots,
    PairedSeries,
    ceilings,
    dumbbells,
    latency,
    strips,
    throughput,
)
from prony.report.html.plot import Series, count_axis, decades, linear_y, seconds_axis, text_width
from prony.report.html.sweep_drawings import OUTCOMES, SweepLine, capacity_chart, sweep
from prony.report.html.theme import BUDGET, PAPER, PATHS, WINDOW, Colour, accent, shape

TOMCAT, NETTY = (Series(name, accent(k), shape(k)) for k, name in enumerate(("spring-tomcat", "netty")))
AXES = {"title": "In words", "key": "one"}
Draw = Callable[[int], str]
WIDTHS = (860, 372, 284)


def draw_latency(width: int, times: tuple[float, ...] = (1, 2, 4, 8, 40, 200)) -> str:
    shares = (0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
    points = tuple(zip(shares, times, strict=True))
    curves = [Curve(TOMCAT, points, main=True), Curve(TOMCAT, points[:3], main=False)]
    return latency(curves, width=width, height=300, **AXES)


def draw_sweep(width: int, *, logarithmic: bool = False) -> str:
    points = tuple((2**k, 100.0 * 1.5**k) for k in range(11))
    lines = [SweepLine(TOMCAT, points), SweepLine(NETTY, points[:5], dashed=True)]
    return sweep(lines, "requests_per_s", logarithmic, width=width, height=230, **AXES)


def draw_capacity(width: int) -> str:
    tried = [(1000.0 * 2**k, 0.1 * 3**k, outcome) for k, outcome in enumerate(Outcome)]
    return capacity_chart(tried, width=width, height=300, **AXES)


def draw_ceilings(width: int, names: tuple[str, ...] = ("client", "CPU of the database", "network")) -> str:
    limits = tuple((f"{name} {900 + 10 * k}/s", 900.0 + 10 * k) for k, name in enumerate(names))
    rows = [CeilingRow(TOMCAT, (400.0, 500.0), 450.0, limits), CeilingRow(NETTY, (300.0,), None)]
    return ceilings(rows, offered_per_s=800, width=width, **AXES)


def draw_throughput(_: int) -> str:
    return throughput(
        [(k + 0.5, 5000.0 + k) for k in range(60)],
        series=NETTY,
        phases=[("window", 30, 90), ("other", 0, 30)],
        changes_s=[20],
        mark_s=40.5,
        until_s=60,
        most_per_s=6000,
        key="one",
        title="In words",
    )


def draw_strips(_: int) -> str:
    rows = [Dots(TOMCAT, (10.0, 20.0), 15.0, "15.0"), Dots(NETTY, (), None, "no figure")]
    return strips(rows, **AXES)


def draw_dumbbells(width: int) -> str:
    rows = [PairedSeries(TOMCAT, (0.25,), (0.75,)), PairedSeries(NETTY, (0.1, 0.2), ())]
    words = "share of the granted CPU time"
    return dumbbells(rows, domain=(0, 1), reference=0.5, tick_format=".0%", axis=words, width=width, **AXES)


EVERY: list[Draw] = [
    draw_latency,
    lambda width: draw_latency(width, (1.0, 1.1, 1.2, 1.3, 1.4, 1.5)),
    draw_sweep,
    lambda width: draw_sweep(width, logarithmic=True),
    draw_capacity,
    draw_ceilings,
    draw_dumbbells,
]
SMALL: list[Draw] = [draw_throughput, draw_strips]
"""Of one width."""


def marks(svg: str, series: Series, fill: Colour | None = None) -> list[tuple[float, float]]:
    """Places of the marks with the shape of this server and this fill, by default its colour."""
    inside = (fill or series.colour).light
    matches = re.findall(
        rf'd="{PATHS[series.shape]}" transform="translate\(([\d.]+) ([\d.]+)\)[^"]*" fill="{inside}"', svg
    )
    return [(float(x), float(y)) for x, y in matches]


def labels(svg: str) -> dict[str, tuple[float, float]]:
    """Places of the texts, by their words."""
    texts = ElementTree.fromstring(svg).iter("text")
    return {t.text or "": (float(t.get("x", "")), float(t.get("y", ""))) for t in texts}


def boxes(svg: str) -> list[tuple[str, float, float, float, float]]:
    """Of each text: words, left, right, top, bottom."""
    matches = []
    for one in ElementTree.fromstring(svg).iter("text"):
        words, size = one.text or "", float(one.get("font-size", 12))
        width, x, y = text_width(words, size), float(one.get("x", "")), float(one.get("y", ""))
        left = x - {"middle": width / 2, "end": width}.get(one.get("text-anchor", ""), 0)
        matches.append((words, left, left + width, y - 0.75 * size, y + 0.2 * size))
    return matches


def check_labels(draw: Draw, width: int) -> None:
    """Nothing leaves the drawing, no two labels touch, and it is the same each time."""
    svg = draw(width)
    _, _, right, bottom = map(float, ElementTree.fromstring(svg).get("viewBox", "").split())
    assert right == width
    every = boxes(svg)
    for words, x1, x2, y1, y2 in every:
        assert -0.1 <= x1 <= x2 <= right + 0.1, words
        assert -0.1 <= y1 <= y2 <= bottom + 0.1, words
    for (one, a1, a2, b1, b2), (other, c1, c2, d1, d2) in combinations(every, 2):
        assert a2 < c1 or c2 < a1 or b2 < d1 or d2 < b1, (one, other)
    for x, y in re.findall(r"translate\(([-\d.]+) ([-\d.]+)\)", svg):
        assert 0 <= float(x) <= right
        assert 0 <= float(y) <= bottom
    assert svg == draw(width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("draw", EVERY)
def test_nothing_leaves_the_drawing_and_no_two_labels_touch(draw: Draw, width: int) -> None:
    check_labels(draw, width)


@pytest.mark.parametrize("draw", SMALL)
def test_the_same_holds_of_the_small_drawings(draw: Draw) -> None:
    check_labels(draw, 284)


def test_a_drawing_has_its_words_and_no_id_but_that_of_its_key() -> None:
    rows = [Dots(Series("a<b", accent(0), shape(0)), (1.0,), 1.0, "<1>")]
    svg = strips(rows, key="p1-start-3", title="a < b")
    root = ElementTree.fromstring(svg)
    assert root.get("aria-labelledby") == "p1-start-3-title"
    assert root.findtext("title") == "a < b"
    assert [e.get("id") for e in root.iter() if e.get("id")] == ["p1-start-3-title"]
    assert "<1>" in labels(svg)


def test_times_are_at_their_percentiles_on_a_log_axis() -> None:
    svg = draw_latency(860)
    at, places = labels(svg), marks(svg, TOMCAT)
    assert [x for x, _ in places][:4] == [at[name][0] for name in ("50 %", "90 %", "99 %", "99.9 %")]
    assert places[0][1] == pytest.approx(at["2"][1] - 4.2, abs=0.1)
    steps = [b - a for a, b in pairwise(at[name][1] for name in ("1", "10", "100"))]
    assert steps[0] == pytest.approx(steps[1], abs=0.2)


def test_a_sweep_has_a_mark_per_point_and_published_ones_are_hollow_and_dashed() -> None:
    svg = draw_sweep(860)
    assert len(marks(svg, TOMCAT)) == 11
    steps = [b[0] - a[0] for a, b in pairwise(marks(svg, TOMCAT))]
    assert steps == pytest.approx([steps[0]] * 10, abs=0.2)
    assert svg.count(f'fill="none" stroke="{NETTY.colour.light}" stroke-width="1.75"/>') == 5
    assert svg.count("stroke-dasharray") == 1
    for users in (1, 1024):
        assert f">{users:,}</text>" in draw_sweep(284), "the ends are named"


def test_an_outcome_has_its_colour_and_shape_and_the_objective_is_dashed() -> None:
    svg = draw_capacity(860)
    places = [
        marks(svg, Series("", colour, name))[0] for colour, name in (OUTCOMES[outcome] for outcome in Outcome)
    ]
    assert places == sorted(places, key=lambda place: place[0])
    assert places == sorted(places, key=lambda place: -place[1])
    (line,) = re.findall(r'<polyline points="[\d.]+,([\d.]+) [^"]*"[^>]*stroke-dasharray', svg)
    assert float(line) + 4.2 == pytest.approx(labels(svg)["100"][1], abs=0.1)


def test_a_rate_stands_between_zero_and_its_ceilings() -> None:
    svg = draw_ceilings(420)
    at, places = labels(svg), marks(svg, TOMCAT)
    assert [x for x, _ in places] == pytest.approx([at["400"][0], (at["400"][0] + at["600"][0]) / 2], abs=0.1)
    rules = re.findall(rf'points="([\d.]+),[^"]*" fill="none" stroke="{BUDGET.light}"', svg)
    assert len(rules) == 3
    assert max(x for x, _ in places) < min(map(float, rules))


def test_a_phase_ends_with_the_chart_and_one_without_a_colour_is_not_shaded() -> None:
    svg = draw_throughput(284)
    ((left, width),) = re.findall(r'<rect x="([\d.]+)"[^>]* width="([\d.]+)"', svg)
    assert f'fill="{WINDOW.light}"' in svg
    assert float(left) + float(width) == 284 - 6
    assert float(left) == pytest.approx((labels(svg)["20 s"][0] + labels(svg)["40 s"][0]) / 2, abs=0.1)
    ((x, _),) = marks(svg, Series("", BUDGET, "triangle-down"))
    assert x > labels(svg)["40 s"][0]


def test_two_kinds_of_value_are_hollow_and_solid_on_one_scale() -> None:
    svg = draw_dumbbells(284)
    at = labels(svg)
    assert [len(marks(svg, one, PAPER)) for one in (TOMCAT, NETTY)] == [1, 2]
    ((x, _),) = marks(svg, TOMCAT)
    assert at["60%"][0] < x < at["80%"][0]


def test_ticks_are_round() -> None:
    assert [name for _, name in seconds_axis(170).ticks] == ["0 s", "50 s", "100 s", "150 s"]
    assert [name for _, name in seconds_axis(3 * 3600).ticks] == ["0 h", "1 h", "2 h", "3 h"]
    assert [name for _, name in count_axis(2400).ticks] == ["0", "500", "1k", "1.5k", "2k"]
    assert [name for _, name in count_axis(3).ticks] == ["0", "1", "2", "3"]
    assert [name for _, name in linear_y("", [0.61]).ticks] == ["0", "0.2", "0.4", "0.6", "0.8"]
    assert decades([3, 70]) == [2, 5, 10, 20, 50, 100]
    assert decades([5, 5]) == [5, 10]
