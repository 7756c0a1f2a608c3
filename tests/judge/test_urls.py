"""The check `urls`: distinct paths and the rows of their feeder."""

from __future__ import annotations

import pytest

from prony.evidence.counts import UrlCount
from prony.evidence.engine import StepFigures
from prony.judge.checks.urls import urls
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

HEALTHY = f.healthy()


@pytest.mark.parametrize(
    ("rows", "distinct", "requests", "code"),
    [
        (1000, 20, 50_000, "few"),
        (1000, 1000, 50_000, "ok"),
        (1_000_000, None, 50_000, "ok"),
        (1_000_000, 400, 50_000, "few"),
        (1_000_000, 30, 40, "ok"),  # too short to send more
        (1_000_000, 3, 40, "few"),
        (5, 5, 50_000, "ok"),
        (1000, 0, 0, "ok"),  # never sent
    ],
)
def test_few_are_a_tenth_of_what_random_rows_give(
    rows: int, distinct: int | None, requests: int, code: str
) -> None:
    counted = UrlCount(scenario="main", step="item", rows=rows, distinct=distinct)
    other = UrlCount(scenario="main", step="page", rows=10, distinct=10)
    steps = tuple(
        StepFigures(scenario="main", name=name, completed=count)
        for name, count in (("item", requests), ("page", 500))
    )
    finding = f.present(urls(f.window(HEALTHY, urls=(other, counted), steps=steps), CheckLimits()))
    assert (finding.code, bool(finding.provided), finding.bias) == (code, code == "few", {})


def test_it_does_not_apply_without_a_feeder() -> None:
    assert urls(HEALTHY, CheckLimits()) is None
