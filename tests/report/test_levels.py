"""Variance by level in words: what is saved, and when no mix is named."""

from __future__ import annotations

import pytest

from prony.compare.levels import Levels
from prony.report.levels import words


def test_the_time_saved_is_a_share_of_the_time_now() -> None:
    found = Levels(0.001, 0.05, 30, 10, window_s=10, process_s=10, between_low=0.03)
    assert found.relative_time(30) == pytest.approx(15.5, abs=0.1)
    assert "(94 % less time for the same width)" in words(found)


def test_no_mix_is_named_where_processes_may_not_differ() -> None:
    said = words(Levels(0.02, 0.01, 3, 10, window_s=10, process_s=90, between_low=0.0))
    assert "less time" not in said
    assert "Too few processes to say how long a window is cheapest." in said
