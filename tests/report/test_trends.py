"""A trend: only conforming trials of one setting are compared with each other, and what differs is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from prony.errors import EnvironmentFault
from prony_serve.trends import otava
from prony_serve.trends.series import Setting, TrendTrial, TrendView, change_words, direction, trend

OLD, NEW = Setting("aaaa", "21.0.5"), Setting("bbbb", "21.0.5")


def trial(k: int, value: float | None, setting: Setting = OLD, **more: Any) -> TrendTrial:
    fields: dict[str, Any] = {"conforms": True} | more
    started = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=k)
    return TrendTrial(f"t{k:03}", f"e{k // 5}", started, setting, value=value, **fields)


def halves(values: Sequence[float], _least: float) -> Sequence[int]:
    """A detector that sees the first step of more than a tenth."""
    steps = [k for k in range(1, len(values)) if abs(values[k] / values[k - 1] - 1) > 0.1]
    return steps[:1]


@pytest.fixture(autouse=True)
def without_otava(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otava, "indices", halves)


def of(trials: Sequence[TrendTrial], figure: str = "requests_per_s", **more: Any) -> TrendView:
    return trend(trials, server="s", workload="w", load="10 users", figure=figure, **more)


def test_another_fingerprint_or_jdk_is_a_break_and_no_change() -> None:
    for other in (NEW, Setting("aaaa", "25"), Setting("aaaa", "21.0.5", "other plan")):
        trend = of([trial(k, 100.0 if k < 20 else 50.0, OLD if k < 20 else other) for k in range(40)])
        assert trend.changes == ()
        assert [b.trial.id for b in trend.breaks] == ["t020"]
        assert len(trend.levels) == 2


def test_two_hosts_in_turns_are_two_series_with_one_break() -> None:
    trials = [
        trial(k, (100.0 if k % 2 else 50.0) * (1 if k < 40 else 2), (OLD, NEW)[k % 2]) for k in range(80)
    ]
    trend = of(trials)
    assert [b.trial.id for b in trend.breaks] == ["t001"]
    assert [(c.last.id, c.trial.id) for c in trend.changes] == [("t038", "t040"), ("t039", "t041")]


def test_what_does_not_count_takes_no_part() -> None:
    kinds: list[dict[str, Any]] = [
        {"conforms": False}, {"bias": math.inf}, {"control": True}
    ]  # fmt: skip
    for more in kinds:
        trend = of([trial(k, 100.0) if k < 20 else trial(k, 50.0, **more) for k in range(40)])
        assert (trend.changes, trend.counting, len(trend.trials)) == ((), 20, 40)
    none = of([trial(k, 100.0) if k < 20 else trial(k, None, conforms=False) for k in range(40)])
    assert (none.changes, none.counting) == ((), 20)


def test_quick_trials_count_and_what_is_badly_known_counts_for_little() -> None:
    trend = of([trial(k, 100.0 if k < 20 else 50.0, quick=True) for k in range(40)])
    assert [change.trial.id for change in trend.changes] == ["t020"]
    disturbed = math.log(5)  # others may have taken four fifths of the server's CPU
    values = [100.0, 25.0] * 10
    trials = [trial(k, v, bias=0.0 if v == 100 else disturbed) for k, v in enumerate(values)]
    (level,) = of(trials).levels
    assert level.value == pytest.approx(100.0, rel=0.001)
    assert [trial.weight for trial in trials[:2]] == [1.0, pytest.approx(0.00015, rel=0.05)]
    assert trial(0, 100.0, bias=math.log1p(0.02)).weight == pytest.approx(0.5)
    # A step that only disturbed trials show is none.
    steps = [
        trial(k, 100.0 + k % 3 if k < 20 else 50.0, bias=0.0 if k < 21 else disturbed) for k in range(40)
    ]
    assert of(steps).changes == ()


def test_a_change_says_its_direction_and_what_differs() -> None:
    asked: list[tuple[str, str]] = []

    def between(before: str, after: str) -> Sequence[tuple[str, str, str]]:
        asked.append((before, after))
        return [("version: tomcat", "1", "2")]

    trials = [trial(k, 100.0 if k < 20 else 90.0 * 0.5) for k in range(40)]
    trend = of(trials, differences=between)
    (point,) = trend.changes
    assert asked == [("t019", "t020")]
    assert point.differences == (("version: tomcat", "1", "2"),)
    assert direction(point) == "worse"
    assert change_words(trend, point) == "requests/s −55.0 %: 100 → 45 (20 trials before, 20 after)"
    (time,) = of(trials, "p99_ms").changes
    assert direction(time) == "better"
    (neither,) = of(trials, "threads").changes
    assert direction(neither) == "changed"


def test_the_order_is_that_of_storing_when_the_clock_went_back() -> None:
    trials = [trial(k if k < 20 else k - 30, 100.0 if k < 20 else 50.0) for k in range(40)]
    (point,) = of(trials).changes
    assert (point.last, point.trial) == (trials[19], trials[20])


def test_too_few_trials_are_reported_and_not_searched() -> None:
    trend = of([trial(k, 100.0 if k < 4 else 50.0) for k in range(8)])
    assert trend.changes == ()
    assert "10 trials" in trend.words


def test_a_missing_detector_is_a_sentence_and_the_trials_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_values: Sequence[float], _least: float) -> Sequence[int]:
        raise EnvironmentFault("it is not installed")

    trials = [trial(k, 100.0) for k in range(20)]
    monkeypatch.setattr(otava, "indices", missing)
    trend = of(trials)
    assert "installed" in trend.words
    assert len(trend.trials) == 20


def test_no_trial_is_a_trend_without_any() -> None:
    assert of([]).trials == ()
