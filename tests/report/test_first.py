"""The rows of the first screen: where bars, intervals and segments end, and what nothing bounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from markupsafe import Markup

from prony.judge.estimate import Uncertainty
from prony.judge.finding import Bias, Finding
from prony.plan.plan import Skipped
from prony.report.answer import AnswerPart, Bar, answer
from prony.report.cell_view import BudgetLine
from prony.report.html.first import MOST_BARS, AnswerTable, answer_table, segments
from prony.report.html.scale import Interval, Scale, axis, bar, ratio_ticks, round_ticks, stacked
from prony.report.html.theme import AT_WORST, INK, SOURCES, accent

from . import factory

RATE = "requests_per_s"


def bends(check: str, low: float | None, high: float | None) -> Finding:
    return factory.finding(check, bias={RATE: Bias(low=low, high=high)}, reason="why", advice="Do so.")


def part_of(troubles: dict[str, Sequence[Finding]]) -> AnswerPart:
    trials = [
        factory.trial(factory.record(server, block, at, quick=False), *troubles.get(server, ()))
        for block in range(5)
        for at, server in enumerate(factory.SERVERS)
    ]
    (part,) = answer(factory.experiment(trials, quick=False, blocks=5, published=False)).parts
    return part


def drawn(part: AnswerPart) -> AnswerTable:
    table = answer_table(part, {server: at for at, server in enumerate(factory.SERVERS)}.__getitem__)
    assert table is not None
    return table


def made(low: float | None, high: float | None, *lines: BudgetLine) -> Bar:
    """A figure of 1,000 good to ± 2 %, at worst between these."""
    bias_low = None if low is None else low / 980 - 1
    bias_high = None if high is None else high / 1020 - 1
    return Bar("a", "a", 1000.0, Uncertainty(-0.02, 0.02, bias_low, bias_high), lines)


def ends(svg: Markup, colour: str) -> list[tuple[float, float]]:
    """From where to where each mark of this colour reaches, in per cent."""
    lines = re.findall(rf'<line x1="([\d.]+)%" x2="([\d.]+)%"[^>]*stroke="{colour}"', svg)
    rects = re.findall(rf'<rect x="([\d.]+)%"[^>]*width="([\d.]+)%"[^>]*fill="{colour}"', svg)
    return [(float(a), float(b)) for a, b in lines] + [(float(a), float(a) + float(b)) for a, b in rects]


def test_segments_end_where_the_figure_is_good_to() -> None:
    lines = (BudgetLine("client", "late", -0.01, 0.05), BudgetLine("isolation", "steal", 0.0, 0.03))
    worst = 1000 * 0.98 * 0.99, 1000 * 1.02 * 1.05 * 1.03
    assert (
        len({*(line.name for line in lines), BudgetLine("isolation", "other_processes", 0.0, 0.0).name}) == 3
    )
    table = segments(made(*worst, *lines), {lines[0].name: SOURCES[0], lines[1].name: SOURCES[1]})
    assert min(one.low for one in table) == pytest.approx(worst[0] / 1000 - 1)
    assert max(one.high for one in table) == pytest.approx(worst[1] / 1000 - 1)
    assert [one.colour for one in table] == [INK, SOURCES[0], SOURCES[0], SOURCES[1]], (
        "none where it bends nothing"
    )
    above = sorted((one for one in table if one.high > 0), key=lambda one: one.high)
    assert [one.high for one in above[:-1]] == pytest.approx([one.low for one in above[1:]])


def test_the_interval_is_dark_and_the_budget_lies_beyond_it() -> None:
    svg = bar(Scale(0, 2000), 1000, Interval(980, 1020), Interval(960, 1200), accent(0))
    assert ends(svg, accent(0).light) == [(0.0, 50.0)]
    assert (49.0, 51.0) in ends(svg, INK.light)
    assert ends(svg, AT_WORST.light) == [(48.0, 60.0)]
    assert "<path" not in svg


@pytest.mark.parametrize(
    ("at_worst", "reach"), [(Interval(960, None), (48.0, 100.0)), (Interval(None, 1200), (0.0, 60.0))]
)
def test_a_side_that_is_not_bounded_ends_in_an_arrow_at_the_border(
    at_worst: Interval, reach: tuple[float, float]
) -> None:
    svg = bar(Scale(0, 2000), 1000, Interval(980, 1020), at_worst, accent(0))
    assert ends(svg, AT_WORST.light) == [reach]
    tip = 100 if at_worst.high is None else 0
    assert re.findall(r'<svg x="(\d+)%"[^>]*><path', svg) == [str(tip)]


def test_what_reaches_beyond_the_scale_is_an_arrow_too() -> None:
    svg = bar(Scale(0, 2000), 1000, None, Interval(900, 9000), accent(0))
    assert ends(svg, AT_WORST.light) == [(45.0, 100.0)]
    assert svg.count("<path") == 1


def test_a_stacked_bar_has_an_arrow_for_each_side_without_a_bound() -> None:
    both = stacked(Scale(-0.1, 0.1), [], Interval(None, None))
    assert sorted(re.findall(r'<svg x="(\d+)%"[^>]*><path', both)) == ["0", "100"]
    assert "<path" not in stacked(Scale(-0.1, 0.1), [], Interval(-0.05, 0.05))


def test_a_row_per_server_and_a_colour_per_source_the_largest_first() -> None:
    part = part_of({"spring-jetty": [bends("client", 0.0, 0.2), bends("warm", 0.0, 0.01)]})
    table = drawn(part)
    assert [row.row.label for row in table.rows] == [bar.label for bar in part.bars]
    assert table.bars
    names = [name for _, name in table.keys]
    assert names[-2:] == ["the load generator", "JIT compilation"]
    (jetty,) = [row for row in table.rows if row.row.label == "spring-jetty"]
    assert jetty.budget is not None
    assert len(ends(jetty.budget, SOURCES[0].light)) == 1
    assert table.unbounded == ()


def test_more_sources_than_colours_share_the_last_one() -> None:
    names = ["client", "warm", "isolation", "network", "host", "stall", "errors", "connections"]
    troubles = [bends(name, 0.0, 0.2 / 2**at) for at, name in enumerate(names)]
    table = drawn(part_of({"spring-jetty": troubles}))
    assert [name for _, name in table.keys][-1] == "other sources"
    (jetty,) = [row for row in table.rows if row.row.label == "spring-jetty"]
    assert jetty.budget is not None
    counts = [len(ends(jetty.budget, colour.light)) for colour in SOURCES]
    assert counts == [1, 1, 1, 1, 1, 3]


def test_what_nothing_bounds_is_named_with_its_rows() -> None:
    some = drawn(part_of({"spring-jetty": [factory.SATURATED]}))
    assert len(some.unbounded) == 1
    assert "spring-jetty" in some.unbounded[0]
    every = drawn(part_of({server: [factory.SATURATED] for server in factory.SERVERS}))
    assert len(every.unbounded) == 1
    assert "spring" not in every.unbounded[0]


def test_a_server_without_a_figure_is_last_and_has_no_drawing() -> None:
    table = drawn(part_of({"spring-undertow": [factory.FAILING]}))
    assert [row.row.server for row in table.rows] == ["spring-jetty", "spring-tomcat", "spring-undertow"]
    last = table.rows[-1]
    assert (last.bar, last.budget) == (None, None)
    assert last.row.cells[1].text.startswith("errors: ")
    assert all(row.bar is not None for row in table.rows[:-1])


@pytest.mark.parametrize("bound", [0.0, 0.5])
def test_the_highest_figure_is_the_best_only_where_the_pairs_show_it(bound: float) -> None:
    slow = [bends("warm", 0.0, bound)] if bound else []
    table = drawn(part_of({"spring-tomcat": slow, "spring-jetty": slow}))
    best = [row.row.server for row in table.rows if row.row.cells[0].best]
    assert table.rows[0].row.server == "spring-undertow"
    assert best == ([] if bound else ["spring-undertow"])


def test_where_nothing_conforms_there_are_no_rows_and_the_reason() -> None:
    (part,) = answer(factory.hopeless()).parts
    assert answer_table(part, factory.SERVERS.index) is None
    assert factory.FAILING.reason in part.failure


def test_one_server_has_no_bar_as_there_is_nothing_to_compare_with() -> None:
    (part,) = answer(factory.foreign_load()).parts
    table = answer_table(part, lambda _: 0)
    assert table is not None
    assert not table.bars


def test_of_twenty_servers_each_has_a_row_and_of_more_than_a_screen_holds_none() -> None:
    (part,) = answer(factory.twenty()).parts
    assert part.rows is None
    table = answer_table(part, factory.TWENTY.index)
    assert table is not None
    assert [row.row.label for row in table.rows] == factory.TWENTY
    (bar_of_one, *_) = part.bars
    many = AnswerPart(
        part.title,
        part.figure,
        part.sentences,
        None,
        (bar_of_one,) * (MOST_BARS + 1),
        "",
        "",
        shows=False,
    )
    assert answer_table(many, factory.TWENTY.index) is None


def test_ticks_are_round_few_and_within_the_scale() -> None:
    assert round_ticks(Scale(-0.032, 0.058)) == pytest.approx([0, 0.05])
    assert round_ticks(Scale(-0.19, 0.26)) == pytest.approx([-0.0, 0.2])
    assert ratio_ticks(Scale(0.97, 1.06, log=True)) == pytest.approx([0.98, 1.0, 1.02, 1.04, 1.06])
    for low, high in ((0.5, 3.0), (0.01, 90.0), (0.9, 1.5), (1e-6, 1e6)):
        ticks = ratio_ticks(Scale(low, high, log=True))
        assert 1 in ticks
        assert len(ticks) <= 7
        assert low <= min(ticks) <= max(ticks) <= high


def test_names_of_an_axis_do_not_touch_and_the_one_at_zero_stays() -> None:
    svg = axis(Scale(-0.25, 0.25), [(-0.2, "a"), (0.0, "zero"), (0.2, "b"), (0.22, "c")])
    assert re.findall(r'text-anchor="(\w+)"[^>]*>(\w+)<', svg) == [
        ("middle", "zero"),
        ("middle", "a"),
        ("middle", "b"),
    ]
    near = axis(Scale(-0.02, 1.0), [(-0.01, "a"), (0.0, "zero"), (1.0, "b")])
    assert re.findall(r'text-anchor="(\w+)"[^>]*>(\w+)<', near) == [("start", "zero"), ("end", "b")]
    ratios = axis(Scale(0.1, 10, log=True), [(0.95, "a"), (1.0, "one"), (10.0, "b")])
    assert re.findall(r">(\w+)<", ratios) == ["one", "b"]


def test_a_part_that_was_not_run_says_why_and_is_no_failure() -> None:
    why = "ports: 3,600,064 ports needed (60,000 connections/s (each for 60 s))"
    view = factory.only(factory.full())
    (part,) = view.parts
    left_out = replace(
        view, parts=(replace(part, skipped=(Skipped(cell="a", part="main", server="a", why=why),)),)
    )
    (table,) = answer(left_out).parts
    assert table.sentences == (f"Not run: {why}",)
    assert (table.failure, table.rows) == ("", None)
