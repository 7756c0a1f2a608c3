"""What the records come to: verdict, medians, the best, grouped findings, history."""

from __future__ import annotations

from datetime import timedelta

import pytest

from prony.judge.finding import Status
from prony.report.comparison import best, better_first, figures_table, history, spread_of, value, verdict_word
from prony.report.findings import finding_groups
from prony.report.result import PairView, PartView, ResultView, spread
from prony.report.shapes import rejected
from prony.report.words import verdict_words

from . import factory


def only(view: ResultView) -> PartView:
    """The part of a result that has one."""
    (part,) = view.parts
    return part


def test_all_valid() -> None:
    view = factory.experiment()
    assert view.status is Status.VALID
    assert verdict_words(view) == "All 9 trials are valid."
    assert finding_groups(only(view)) == ()


def test_rejected_trials_make_it_suspect_and_enter_no_figure() -> None:
    view = factory.troubled()
    assert view.status is Status.SUSPECT
    assert verdict_words(view) == (
        "Of 9 trials, 3 suspect, 4 with an unknown check and 2 rejected; figures come from the 7 that count."
    )
    assert {cell.label for cell in view.cells if cell.rejected} == {"spring-jetty", "spring-undertow"}
    (jetty,) = only(view).of("spring-jetty")
    assert len(jetty.counting) == 2
    found = spread_of(jetty, "requests_per_s")
    assert found is not None
    assert found.n == 2


def test_a_server_without_a_trial_that_counts_makes_it_invalid() -> None:
    hopeless = factory.hopeless()
    assert hopeless.status is Status.INVALID
    assert verdict_words(hopeless) == "No figure is printed: none of the 6 trials counts."
    one = factory.experiment(
        [
            factory.trial(factory.record("spring-tomcat")),
            factory.trial(factory.record("spring-jetty"), factory.STEP_FOUND),
        ],
        ["spring-tomcat", "spring-jetty"],
    )
    assert one.status is Status.INVALID
    assert verdict_words(one).startswith("No figure for spring-jetty:")


def test_nothing_measured() -> None:
    view = factory.experiment([], ["spring-tomcat"])
    assert view.status is Status.INVALID
    assert verdict_words(view) == "Nothing was measured."


def test_controls_take_no_part() -> None:
    good = factory.trial(factory.record("spring-tomcat"))
    control = factory.trial(factory.record("spring-tomcat", 1, kind="control", level=100.0))
    view = factory.experiment([good, control], ["spring-tomcat"])
    assert len(view.cells[0].counting) == 1
    assert verdict_words(view) == "The trial is valid."
    assert rejected(only(view)) is None


def test_spread_is_median_and_range_and_knows_no_nan() -> None:
    found = spread([3.0, 1.0, float("nan"), 2.0, 10.0])
    assert found is not None
    assert (found.median, found.low, found.high, found.n) == (2.5, 1.0, 10.0, 4)
    assert spread([float("inf")]) is None


def test_two_percentiles_are_never_averaged() -> None:
    found = spread([6.27, 5.82], percentile=True)
    assert found is not None
    assert found.median == 6.27
    assert (middle := spread([6.27, 5.82])) is not None
    assert middle.median == pytest.approx(6.045)


def test_the_steady_figure_stands_beside_the_published_protocols() -> None:
    trial = factory.experiment().trials[0]
    assert value(trial, "steady_over_published") == pytest.approx(
        trial.figures["requests_per_s"] / trial.figures["published_requests_per_s"]
    )


def pair(a: str, b: str, verdict: str, figure: str = "requests_per_s", ratio: float = 1.1) -> PairView:
    return PairView(a, b, figure, ratio, ratio * 0.97, ratio * 1.03, verdict, f"{a} {verdict} {b}")


def test_best_only_when_the_comparison_says_so_against_every_rival() -> None:
    view = factory.experiment()
    tomcat, jetty, undertow = factory.SERVERS
    sure = [pair(undertow, tomcat, "faster"), pair(jetty, undertow, "slower"), pair(tomcat, jetty, "slower")]
    assert best(only(factory.with_pairs(view, sure)), "requests_per_s") == undertow
    unsure = [sure[0], pair(jetty, undertow, "inconclusive"), sure[2]]
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
    slower = pair("x", "y", "slower", ratio=0.8)
    turned = better_first(slower)
    assert (turned.a, turned.b, turned.verdict) == ("y", "x", "faster")
    assert turned.ratio == pytest.approx(1.25)
    assert turned.low is not None
    assert turned.low == pytest.approx(1 / (0.8 * 1.03))
    times = better_first(pair("x", "y", "slower", "mean_ms", 1.3))
    assert (times.a, verdict_word(times)) == ("y", "lower")
    assert better_first(pair("x", "y", "faster")).a == "x"
    assert better_first(PairView("x", "y", "mean_ms", None, None, None, "inconclusive", "")).a == "x"


def test_findings_are_grouped_by_check_and_advice_with_where_they_were_seen() -> None:
    groups = finding_groups(only(factory.troubled()))
    assert [g.check for g in groups] == ["steady", "isolation", "warm"]
    assert groups[0].where == "spring-jetty 1 of 3 trials"
    assert groups[1].where == (
        "spring-tomcat 1 of 3 trials, spring-jetty 1 of 3 trials, spring-undertow 1 of 3 trials"
    )
    assert groups[2].where == "all 9 trials"
    assert groups[2].reasons == ("the agent could not be read",)


def test_many_different_reasons_are_cut() -> None:
    trials = [
        factory.trial(
            factory.record("spring-tomcat", block),
            factory.finding(
                "stall", Status.SUSPECT, reason=f"a gap of {block} ms", advice="Look at the GC log."
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
    found = spread_of(tomcat, "requests_per_s")
    assert chosen is not None
    assert found is not None
    assert chosen.figures["requests_per_s"] == found.median
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
        "isolation", Status.INVALID, reason="other processes took 84 % of the CPUs (python)"
    )
    first = factory.trial(factory.record("spring-tomcat"), bad)
    later = first.record.started_at + timedelta(minutes=2)
    again = factory.record("spring-tomcat").model_copy(update={"id": "again", "started_at": later})
    view = factory.experiment([first, factory.trial(again)], ["spring-tomcat"], quick=False)
    (cell,) = view.cells
    assert [t.record.id for t in cell.trials] == ["again"]
    assert [t.record.id for t in cell.superseded] == [first.record.id]
    assert view.status is Status.VALID
    assert any("Disturbed trials were repeated: spring-tomcat" in warning for warning in view.warnings)
    text = rejected(only(view))
    assert text is not None
    assert text.lines == (
        "spring-tomcat, block 1: isolation: other processes took 84 % of the CPUs (python); run again",
    )
    verdicts = figures_table(only(view)).sections[-1].rows[-1]
    assert verdicts.cells[0].spread == "1 repeated"
