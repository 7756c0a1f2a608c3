"""The search for levels is exact: no other cuts have a lower cost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from prony.steady.changes import MIN_SEGMENT_ROWS, find_changes

PENALTY = 3.0


def every(rows: int) -> Iterator[tuple[int, ...]]:
    """All cuts into levels of MIN_SEGMENT_ROWS or more."""
    yield ()
    for last in range(MIN_SEGMENT_ROWS, rows - MIN_SEGMENT_ROWS + 1):
        yield from ((*before, last) for before in every(last))


def squared(series: NDArray[np.float64], cuts: tuple[int, ...]) -> float:
    return sum(float(((part - part.mean()) ** 2).sum()) for part in np.split(series, cuts))


@pytest.mark.parametrize("rows", [6, 9, 13, 16])
def test_no_other_cuts_have_a_lower_cost(rows: int) -> None:
    rng = np.random.default_rng(rows)
    for _ in range(20):
        series = rng.standard_normal(rows) + np.repeat(rng.normal(0, 3, 4), rows)[:rows]
        series[rows // 2 :] += rng.normal(0, 3)
        variances = [float(series.var(ddof=1))]
        for changes in (1, 2):
            errors = [squared(series, cuts) for cuts in every(rows) if len(cuts) == changes]
            if errors and rows - 1 - 2 * changes >= 2:
                variances.append(min(errors) / (rows - 1 - 2 * changes))
        paid = PENALTY * min(variances)
        found = find_changes(series, penalty=PENALTY, least=0.0)
        costs = {cuts: squared(series, cuts) + paid * len(cuts) for cuts in every(rows)}
        assert costs[found.cuts] == pytest.approx(min(costs.values()))
