"""What a comparison may say, from stored trials to the page: missing trials, budgets, position, and how a
pair is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from prony.compare.claim import Claim
from prony.compare.noninferiority import Change, Changes, FigureChange
from prony.judge.finding import Bias, Finding
from prony.plan.part import GateTest
from prony.report.cell_view import HEADLINE
from prony.report.export import to_json
from prony.report.gate import view_of
from prony.report.html import ratio_rows, render_html
from prony.report.html.theme import AT_WORST, INK, PAPER
from prony.report.result import PairView, ResultView

from . import factory

SERVERS = ("spring-tomcat", "spring-jetty")
Made = tuple[float, tuple[Finding, ...]]


def result(
    made: Callable[[str, int], Made], blocks: int = 10, position: Callable[[str, int], int] | None = None
) -> ResultView:
    """`made`: factor on the server's level and findings of one trial; by default positions alternate."""
    trials = []
    for block in range(blocks):
        for number, server in enumerate(SERVERS):
            factor, troubles = made(server, block)
            place = position(server, block) if position else (number + block) % 2
            level = 8000.0 * factor
            trials.append(factory.trial(factory.record(server, block, place, level=level), *troubles))
    return factory.experiment(trials, SERVERS, quick=False, blocks=blocks, published=False)


def pair_of(view: ResultView, figure: str = HEADLINE) -> PairView:
    (pair,) = [pair for pair in view.parts[0].pairs if pair.figure == figure]
    return pair


def failing_in_tomcat(count: int) -> Callable[[str, int], Made]:
    """Tomcat is 30 % faster and `count` of its trials do not conform."""

    def made(server: str, block: int) -> Made:
        tomcat = server == "spring-tomcat"
        return 1.3 if tomcat else 1.0, (factory.FAILING,) if tomcat and block < count else ()

    return made


def faster(*troubles: Finding) -> ResultView:
    """Tomcat is 30 % faster; each of its trials has these findings."""
    return result(lambda server, _: (1.3, troubles) if server == "spring-tomcat" else (1.0, ()))


def test_the_better_server_is_named_where_the_difference_is_shown() -> None:
    pair = pair_of(faster())
    assert pair.differs
    assert pair.better == "spring-tomcat"
    assert pair.worst_low == pair.low
    assert pair.at_least is not None
    assert 1.1 < pair.at_least < 1.3


def test_trials_without_a_figure_stand_against_the_claim_at_their_worst() -> None:
    few, many = (pair_of(result(failing_in_tomcat(count))) for count in (1, 6))
    for pair in (few, many):
        assert "missing" in [source.source for source in pair.sources]
        assert pair.low is not None
        assert pair.worst_low is not None
        assert pair.worst_low < pair.low
    assert few.differs
    assert (many.worst_low or 0) < (few.worst_low or 0), "more of them say less"


def test_a_small_difference_that_one_missing_trial_could_undo_is_open() -> None:
    def made(server: str, block: int) -> Made:
        slow = server == "spring-tomcat" and block == 0
        return (0.7 if slow else 1.03 if "tom" in server else 1.0), (factory.FAILING,) if slow else ()

    assert pair_of(result(made)).claim is not Claim.SHOWN


def test_a_bound_that_only_the_slower_one_could_gain_from_leaves_the_pair_open() -> None:
    unsure = factory.finding("warm", bias={HEADLINE: Bias(high=0.5)}, reason="why")
    view = result(lambda server, _: (1.3, ()) if server == "spring-tomcat" else (1.0, (unsure,)))
    pair = pair_of(view)
    assert pair.claim is Claim.OPEN
    assert pair.low is not None
    assert pair.low > 1
    assert pair.worst_low is not None
    assert pair.worst_low < 1
    (source,) = [source for source in pair.sources if source.source == "warm"]
    assert source.low == pytest.approx(1 / 1.5 - 1)


def slower_second(server: str, block: int) -> Made:
    """The second trial of a block is 5 % slower, in the order `tomcat_first` gives."""
    return (1.0 if (server == "spring-tomcat") == tomcat_first(block) else 0.95), ()


def tomcat_first(block: int) -> bool:
    return block % 2 == 0


def place(server: str, block: int) -> int:
    return int((server == "spring-tomcat") != tomcat_first(block))


def test_an_effect_of_position_in_balanced_order_bends_no_ratio() -> None:
    view = result(slower_second, position=place)
    (found,) = to_json(view).parts[0].positions
    assert found.found
    assert found.ratio_per_place == pytest.approx(0.95, abs=0.015)
    assert found.sentence in render_html(view)
    assert "position" not in [source.source for source in pair_of(view).sources]


def test_an_effect_of_position_in_unbalanced_order_is_in_the_budget() -> None:
    """Tomcat goes first in nine blocks of ten."""

    def first(block: int) -> bool:
        return block != 5

    def made(server: str, block: int) -> Made:
        return (1.0 if (server == "spring-tomcat") == first(block) else 0.95), ()

    view = result(made, position=lambda s, b: int((s == "spring-tomcat") != first(b)))
    pair = pair_of(view)
    (source,) = [source for source in pair.sources if source.source == "position"]
    assert source.low is not None
    assert source.low < -0.03, "the first place is worth this much of the ratio"
    assert not pair.differs
    assert pair.a in view.parts[0].positions[0].sentence


def test_without_an_effect_of_position_none_is_found() -> None:
    view = result(lambda _s, _b: (1.0, ()))
    (found,) = to_json(view).parts[0].positions
    assert not found.found
    assert found.low < 1 < found.high
    assert found.sentence in render_html(view)


def test_variance_by_level_is_on_the_page() -> None:
    view = result(lambda _s, _b: (1.0, ()))
    found = view.parts[0].levels
    assert found is not None
    assert found.processes == 20
    assert to_json(view).parts[0].levels == found
    assert "Variance by level" in render_html(view)


# -- how it is drawn


def test_a_row_per_pair_has_both_intervals_and_the_later_one() -> None:
    view = faster(factory.finding("client", bias={HEADLINE: Bias(high=0.04)}, reason="why"))
    pair = pair_of(view)
    assert pair.horizon_s is not None
    table = ratio_rows.pairs(view.parts[0], headline=True)
    assert table is not None
    (row,) = table.rows
    assert len(table.columns) == len(row.cells) == 5
    assert f"{pair.horizon_s:g} s" in table.columns[3]
    assert row.cells[1] == f"{pair.low:.3f} to {pair.high:.3f}"
    assert row.cells[2] == f"{pair.worst_low:.3f} to {pair.worst_high:.3f}"
    assert row.cells[3] == f"{pair.later_low:.3f} to {pair.later_high:.3f}"
    for colour in (INK, AT_WORST):
        assert f'stroke="{colour.light}"' in row.drawing
    others = ratio_rows.pairs(view.parts[0], headline=False)
    assert others is not None
    assert len(others.rows) == sum(
        pair.low is not None and pair.figure != HEADLINE for pair in view.parts[0].pairs
    )


def test_an_open_pair_is_hollow_and_one_side_without_a_bound_is_reported() -> None:
    shown, open_ = (
        ratio_rows.pairs(view.parts[0], headline=True)
        for view in (faster(), faster(factory.finding("warm", bias={HEADLINE: Bias(low=None)}, reason="why")))
    )
    assert shown is not None
    assert open_ is not None
    fills = [re.findall(r'<circle[^>]*fill="([^"]*)"', table.rows[0].drawing) for table in (shown, open_)]
    assert fills == [[INK.light], [PAPER.light]]
    assert re.fullmatch(r"(below|above) \d\.\d{3}", open_.rows[0].cells[2])
    assert "<path" in open_.rows[0].drawing


def test_a_gate_shows_each_change_against_its_own_margin() -> None:
    gate_test = GateTest(base="base", candidate="mine", figures=(HEADLINE, "p99_ms"), margin=0.03)
    figures = (
        FigureChange(HEADLINE, Change.NO_WORSE, 1.0, 0.99, 1.01, 0.95, 1 / 1.03, 8, 0.98, 1.02),
        FigureChange("p99_ms", Change.CANNOT_TELL, 1.02, 0.97, 1.08, 0.95, 1.10, 8, 0.96, None),
    )
    part = result(lambda _server, _block: (1.0, ())).parts[0]
    found = Changes(Change.CANNOT_TELL, figures, ())
    view = view_of(gate_test, found, part, most_blocks=8, first_look=3, spent_s=60)
    table = ratio_rows.changes(view)
    assert table is not None
    assert [row.cells[-1] for row in table.rows] == [Change.NO_WORSE.value, Change.CANNOT_TELL.value]
    assert [row.cells[3] for row in table.rows] == ["\N{MINUS SIGN}2.9 %", "+10.0 %"]
    assert table.rows[1].cells[2].startswith("above ")
    bands = [re.findall(r'<rect x="([\d.]+)%"[^>]*width="([\d.]+)%"', row.drawing)[0] for row in table.rows]
    assert float(bands[1][1]) > 3 * float(bands[0][1])
