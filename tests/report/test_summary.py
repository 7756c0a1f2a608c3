"""What the records come to: verdict, medians, the best, grouped findings, history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prony.judge.finding import Status
from prony.report.finding_groups import finding_groups
from prony.report.history import history
from prony.report.model import PairView, spread
from prony.report.summary import (
    best,
    better_first,
    counting,
    median_trial,
    overall,
    rejected,
    sections,
    spread_of,
    value,
    verdict_word,
    verdict_words,
)

from . import factory


def test_all_valid() -> None:
    view = factory.experiment()
    assert overall(view) is Status.VALID
    assert verdict_words(view) == "All 9 trials are valid."
    assert finding_groups(view) == ()


def test_rejected_trials_make_it_suspect_and_enter_no_figure() -> None:
    view = factory.troubled()
    assert overall(view) is Status.SUSPECT
    assert verdict_words(view) == (
        "Of 9 trials, 3 suspect, 4 with a check that could not be made and 2 rejected; "
        "figures come from the 7 that count."
    )
    assert {t.record.server for t in rejected(view)} == {"spring-jetty", "spring-undertow"}
    assert len(counting(view, "spring-jetty")) == 2
    found = spread_of(view, "spring-jetty", "requests_per_s")
    assert found is not None
    assert found.n == 2


def test_a_server_without_a_trial_that_counts_makes_it_invalid() -> None:
    hopeless = factory.hopeless()
    assert overall(hopeless) is Status.INVALID
    assert verdict_words(hopeless) == "No figure is printed: none of the 6 trials may be used."
    one = factory.experiment(
        [
            factory.trial(factory.record("spring-tomcat")),
            factory.trial(factory.record("spring-jetty"), factory.STEP_FOUND),
        ],
        ["spring-tomcat", "spring-jetty"],
    )
    assert overall(one) is Status.INVALID
    assert verdict_words(one).startswith("No figure for spring-jetty:")


def test_nothing_measured() -> None:
    view = factory.experiment([], ["spring-tomcat"])
    assert overall(view) is Status.INVALID
    assert verdict_words(view) == "Nothing was measured."


def test_controls_take_no_part() -> None:
    good = factory.trial(factory.record("spring-tomcat"))
    control = factory.trial(factory.record("spring-tomcat", 1, kind="control", level=100.0))
    view = factory.experiment([good, control], ["spring-tomcat"])
    assert len(counting(view, "spring-tomcat")) == 1
    assert verdict_words(view) == "The trial is valid."
    assert rejected(view) == ()


def test_spread_is_median_and_range_and_knows_no_nan() -> None:
    found = spread([3.0, 1.0, float("nan"), 2.0, 10.0])
    assert found is not None
    assert (found.median, found.low, found.high, found.n) == (2.5, 1.0, 10.0, 4)
    assert spread([float("inf")]) is None


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
    assert best(replace(view, pairs=tuple(sure)), "requests_per_s") == undertow
    unsure = [sure[0], pair(jetty, undertow, "inconclusive"), sure[2]]
    assert best(replace(view, pairs=tuple(unsure)), "requests_per_s") is None
    assert best(replace(view, pairs=()), "requests_per_s") is None
    marked = [
        cell.best
        for section in sections(replace(view, pairs=tuple(sure)))
        for row in section.rows
        if row.figure == "requests_per_s"
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
    groups = finding_groups(factory.troubled())
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
    (group,) = finding_groups(factory.experiment(trials, ["spring-tomcat"]))
    assert len(group.reasons) == 3
    assert group.more == 2


def test_the_median_trial_is_a_real_one_that_counts() -> None:
    view = factory.experiment()
    chosen = median_trial(view, "spring-tomcat")
    found = spread_of(view, "spring-tomcat", "requests_per_s")
    assert chosen is not None
    assert found is not None
    assert chosen.figures["requests_per_s"] == found.median
    assert median_trial(factory.hopeless(), "spring-tomcat") is None


def test_history_is_relative_to_the_mean_of_the_servers() -> None:
    rows = history(factory.experiment())
    assert [r.figure for r in rows][:2] == ["jvm_memory_used_mb", "jvm_classes_loaded"]
    requests = next(r for r in rows if r.figure == "published_requests_per_s")
    shape = requests.published_shape
    assert shape[0] == pytest.approx(1542 / ((1542 + 1627 + 1650) / 3))
    assert sum(s for s in shape if s is not None) == pytest.approx(3)
    assert sum(s for s in requests.measured_shape if s is not None) == pytest.approx(3)
    assert history(factory.experiment(published=None)) == ()


def test_history_of_a_server_that_was_not_measured_has_no_measured_value() -> None:
    rows = history(factory.hopeless())
    assert all(v is None for r in rows for v in r.measured)
    assert all(v is None for r in rows for v in (*r.published_shape, *r.measured_shape))
