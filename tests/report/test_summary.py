"""What the records come to: what conforms, medians, the best, grouped findings, history."""

from __future__ import annotations

from datetime import timedelta

import pytest

from prony.compare import Claim
from prony.judge.finding import Bias
from prony.report.answer import conforming
from prony.report.cell_view import spread
from prony.report.comparison import best, figures_table
from prony.report.history import history
from prony.report.pairs import better_first
from prony.report.result import PairView, PartView, ResultView
from prony.report.shapes import finding_groups, not_conforming

from . import factory


def only(view: ResultView) -> PartView:
    """The part of a result that has one."""
    (part,) = view.parts
    return part


def test_all_conform() -> None:
    view = factory.experiment()
    assert view.conforms
    assert view.usable
    assert conforming(view).startswith("9 of 9 ")
    assert finding_groups(only(view)) == ()


def test_a_trial_that_does_not_conform_enters_no_figure() -> None:
    view = factory.troubled()
    assert not view.conforms
    assert view.usable, "every server has a figure"
    assert conforming(view).startswith("7 of 9 ")
    assert {cell.label for cell in view.cells if len(cell.counting) < len(cell.trials)} == {
        "spring-jetty",
        "spring-undertow",
    }
    (jetty,) = only(view).of("spring-jetty")
    assert len(jetty.counting) == 2
    summary = jetty.figure("requests_per_s")
    assert summary is not None
    assert summary.n == 2
    missing = next(line for line in jetty.budget("requests_per_s") if line.source == "missing")
    assert missing.bias.size > 0, "it lies between the lowest and the highest that were seen"


def test_a_server_without_a_trial_that_conforms_has_no_answer() -> None:
    hopeless = factory.hopeless()
    assert not hopeless.usable
    assert conforming(hopeless).startswith("0 of 6 ")
    one = factory.experiment(
        [
            factory.trial(factory.record("spring-tomcat")),
            factory.trial(factory.record("spring-jetty"), factory.FAILING),
        ],
        ["spring-tomcat", "spring-jetty"],
    )
    assert not one.usable
    assert [cell.conforms for cell in one.cells] == [True, False]


def test_nothing_measured() -> None:
    view = factory.experiment([], ["spring-tomcat"])
    assert not view.usable
    assert view.cells[0].conforms is None


def test_controls_take_no_part() -> None:
    good = factory.trial(factory.record("spring-tomcat"))
    control = factory.trial(factory.record("spring-tomcat", 1, kind="control", level=100.0))
    view = factory.experiment([good, control], ["spring-tomcat"])
    assert [trial.record.id for trial in view.cells[0].counting] == [good.record.id]
    assert view.cells[0].conforms
    assert not not_conforming(only(view))


def test_spread_is_median_and_range_and_knows_no_nan() -> None:
    summary = spread([3.0, 1.0, float("nan"), 2.0, 10.0])
    assert summary is not None
    assert (summary.median, summary.low, summary.high, summary.n) == (2.5, 1.0, 10.0, 4)
    assert spread([float("inf")]) is None


def test_two_percentiles_are_never_averaged() -> None:
    summary = spread([6.27, 5.82], percentile=True)
    assert summary is not None
    assert summary.median == 6.27
    assert (middle := spread([6.27, 5.82])) is not None
    assert middle.median == pytest.approx(6.045)


def test_the_steady_figure_stands_beside_the_published_protocols() -> None:
    trial = factory.experiment().trials[0]
    assert trial.figure("steady_over_published") == pytest.approx(
        trial.figures["requests_per_s"] / trial.figures["published_requests_per_s"]
    )


def pair(
    a: str, b: str, *, better: str | None = None, figure: str = "requests_per_s", ratio: float = 1.1
) -> PairView:
    """Shown where one of them is better, else open."""
    low, high = ratio * 0.97, ratio * 1.03
    return PairView(
        a=a,
        b=b,
        figure=figure,
        ratio=ratio,
        low=low,
        high=high,
        worst_low=low,
        worst_high=high,
        later_low=None,
        later_high=None,
        horizon_s=None,
        claim=Claim.OPEN if better is None else Claim.SHOWN,
        at_least=None,
        within=None,
        better=better,
        settles=None,
        sources=(),
        provided=(),
        sentence=f"{a}, {b}",
        window_sentence=f"{a}, {b}",
    )


def test_best_only_when_the_comparison_says_so_against_every_rival() -> None:
    view = factory.experiment()
    tomcat, jetty, undertow = factory.SERVERS
    sure = [
        pair(undertow, tomcat, better=undertow),
        pair(jetty, undertow, better=undertow, ratio=0.9),
        pair(tomcat, jetty, better=jetty, ratio=0.9),
    ]
    assert best(only(factory.with_pairs(view, sure)), "requests_per_s") == undertow
    unsure = [sure[0], pair(jetty, undertow), sure[2]]
    assert best(only(factory.with_pairs(view, unsure)), "requests_per_s") is None
    assert best(only(factory.with_pairs(view, ())), "requests_per_s") is None
    marked = [
        cell.best
        for section in figures_table(only(factory.with_pairs(view, sure))).sections
        for row in section.rows
        if (section.title, row.label) == ("Steady load", "requests/s")
        for cell in row.cells
    ]
    assert marked == [False, False, True]


def test_the_better_server_comes_first() -> None:
    turned = better_first(pair("x", "y", better="y", ratio=0.8))
    assert (turned.a, turned.b, turned.better) == ("y", "x", "y")
    assert turned.ratio == pytest.approx(1.25)
    assert turned.low == pytest.approx(1 / (0.8 * 1.03))
    assert turned.worst_high == pytest.approx(1 / (0.8 * 0.97))
    assert better_first(pair("x", "y", better="y", figure="mean_ms", ratio=1.3)).a == "y"
    assert better_first(pair("x", "y", better="x")).a == "x"


def test_findings_are_grouped_by_check_and_code_with_where_they_were_seen() -> None:
    groups = finding_groups(only(factory.troubled()))
    summary = {group.check: group for group in groups}
    assert groups[0].check == "errors", "the gravest first"
    assert summary["errors"].where == "spring-jetty 1 of 3 trials"
    assert summary["isolation"].where == ", ".join(f"{name} 1 of 3 trials" for name in factory.SERVERS)
    assert summary["warm"].where == "all 9 trials"
    assert summary["warm"].reasons == (factory.BLIND.reason,)


def test_many_different_reasons_are_cut() -> None:
    trials = [
        factory.trial(
            factory.record("spring-tomcat", block),
            factory.finding(
                "stall",
                bias={"p99_ms": Bias(high=0.1)},
                reason=f"a gap of {block} ms",
                advice="Look at the GC log.",
            ),
        )
        for block in range(5)
    ]
    (group,) = finding_groups(only(factory.experiment(trials, ["spring-tomcat"])))
    assert len(group.reasons) == 3
    assert group.more == 2


def test_the_median_trial_is_a_real_one_that_counts() -> None:
    view = factory.experiment()
    (tomcat,) = only(view).of("spring-tomcat")
    chosen = tomcat.median_trial
    summary = tomcat.figure("requests_per_s")
    assert chosen is not None
    assert summary is not None
    assert chosen.figures["requests_per_s"] == summary.median
    assert factory.hopeless().cells[0].median_trial is None


def test_history_is_relative_to_the_mean_of_the_servers() -> None:
    rows = history(only(factory.experiment()))
    assert [r.figure for r in rows][:2] == ["jvm_memory_used_mb", "jvm_classes_loaded"]
    requests = next(r for r in rows if r.figure == "published_requests_per_s")
    shape = requests.published_shape
    assert shape[0] == pytest.approx(1542 / ((1542 + 1627 + 1650) / 3))
    assert sum(s for s in shape if s is not None) == pytest.approx(3)
    assert sum(s for s in requests.measured_shape if s is not None) == pytest.approx(3)
    assert history(only(factory.experiment(published=False))) == ()


def test_history_of_a_server_that_was_not_measured_has_no_measured_value() -> None:
    rows = history(only(factory.hopeless()))
    assert all(v is None for r in rows for v in r.measured)
    assert all(v is None for r in rows for v in (*r.published_shape, *r.measured_shape))


def test_a_disturbed_trial_that_was_repeated_stays_on_record_and_out_of_every_figure() -> None:
    bad = factory.finding(
        "isolation",
        bias={"requests_per_s": Bias(high=5.0)},
        reason="other processes took 84 % of the CPUs (python)",
        outside=True,
    )
    first = factory.trial(factory.record("spring-tomcat"), bad)
    later = first.record.started_at + timedelta(minutes=2)
    again = factory.record("spring-tomcat").model_copy(update={"id": "again", "started_at": later})
    view = factory.experiment([first, factory.trial(again)], ["spring-tomcat"], quick=False)
    (cell,) = view.cells
    assert [t.record.id for t in cell.trials] == ["again"]
    assert [t.record.id for t in cell.superseded] == [first.record.id]
    assert view.conforms
    assert any("spring-tomcat" in warning for warning in view.warnings)
    (text,) = not_conforming(only(view))
    assert len(text.lines) == 1
    assert text.lines[0].endswith("run again")
    conforms = next(
        row for row in figures_table(only(view)).sections[-1].rows if row.label == "trials that conform"
    )
    assert conforms.cells[0].spread == "1 repeated"
