"""Change points: what is planted is found where it is, noise alone is left alone, and a lone outlier is no
change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from prony.errors import EnvironmentFault
from prony_serve.trends import otava
from prony_serve.trends.levels import FEWEST, FEWEST_EACH, changes

needs_otava = pytest.mark.skipif(not otava.is_installed(), reason=f"Apache Otava is missing: {otava.INSTALL}")


def series(levels: Sequence[tuple[int, float]], spread: float, seed: int) -> list[float]:
    """(trials, level) one after the other, with lognormal noise."""
    source = np.random.default_rng(seed)
    return [
        float(level * np.exp(source.normal(0, spread))) for trials, level in levels for _ in range(trials)
    ]


@needs_otava
@pytest.mark.parametrize("share", [-0.06, 0.05, 0.5])
@pytest.mark.parametrize("before", [FEWEST_EACH, 40, 120])
def test_a_planted_change_is_found_where_it_is(before: int, share: float) -> None:
    (found,) = changes(series([(before, 7000.0), (30, 7000.0 * (1 + share))], 0.008, seed=before))
    assert abs(found.index - before) <= 1
    assert found.ratio - 1 == pytest.approx(share, abs=0.02)
    assert (found.trials_before, found.trials_after) == (found.index, before + 30 - found.index)


@needs_otava
def test_noise_alone_is_left_alone() -> None:
    """Per series of 150 trials with a spread of 1 %, as a quiet host has it; tests/compare/… counts more."""
    alarms = sum(bool(changes(series([(150, 7000.0)], 0.01, seed))) for seed in range(60))
    assert alarms == 0


@needs_otava
def test_nights_that_differ_are_no_changes_and_a_change_of_many_nights_is_one() -> None:
    """Trials of a night share what differs that night: five of them are one sample."""
    source = np.random.default_rng(2)
    night = np.repeat(source.normal(0, 0.02, 30), 5) + source.normal(0, 0.004, 150)
    sessions = [k // 5 for k in range(150)]
    values = [float(one) for one in 7000 * np.exp(night)]
    assert changes(values) != ()  # as if each trial were a night
    assert changes(values, sessions) == ()
    slower = [one * (0.9 if k >= 75 else 1) for k, one in enumerate(values)]
    (found,) = changes(slower, sessions)
    assert abs(found.index - 75) <= 5


@needs_otava
def test_a_change_below_the_band_is_none() -> None:
    assert changes(series([(60, 7000.0), (60, 7000.0 * 1.01)], 0.001, seed=1)) == ()


@needs_otava
def test_outliers_are_no_level() -> None:
    values = series([(60, 7000.0)], 0.008, seed=3)
    for outliers in ([30], [58, 59], [0, 1, 2], [59]):
        with_them = [one * 0.6 if k in outliers else one for k, one in enumerate(values)]
        assert changes(with_them) == ()


@pytest.mark.parametrize(
    "values", [[], [1.0] * (FEWEST - 1), [1.0] * 20 + [0.0], [1.0] * 20 + [float("nan")]]
)
def test_what_cannot_be_searched_has_no_changes(monkeypatch: pytest.MonkeyPatch, values: list[float]) -> None:
    def never(_values: Sequence[float], _least: float) -> Sequence[int]:
        raise AssertionError("searched")

    monkeypatch.setattr(otava, "indices", never)
    assert changes(values) == ()


def test_a_short_level_goes_first_and_its_neighbours_are_judged_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otava, "indices", lambda _values, _least: (20, 22))
    values = [100.0] * 20 + [50.0] * 2 + [100.0] * 20
    assert changes(values) == ()
    values = [100.0] * 20 + [50.0] * 2 + [80.0] * 20
    (found,) = changes(values)
    assert found.index in (20, 22)
    assert found.ratio == pytest.approx(0.8, rel=0.06)


def test_without_otava_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otava, "is_installed", lambda: False)
    with pytest.raises(EnvironmentFault, match="pip install --no-deps apache-otava=="):
        changes([1.0] * 30)
