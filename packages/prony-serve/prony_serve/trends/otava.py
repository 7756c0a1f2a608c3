"""Change points by Apache Otava: E-divisive means over sliding windows, then a t-test per point (Fleming et
al. 2023, https://doi.org/10.1145/3578244.3583719). The only module that imports Otava.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from prony.errors import EnvironmentFault

WINDOW = 50
"""Values per sliding window (Otava's default)."""
MOST_P_VALUE = 0.001
"""Otava's default."""
INSTALL = "pip install --no-deps apache-otava==0.8.0"


def is_installed() -> bool:
    """Whether Otava can be imported."""
    return importlib.util.find_spec("otava") is not None


def require() -> None:
    """Raises EnvironmentFault without Otava."""
    if not is_installed():
        raise EnvironmentFault(f"change points need Apache Otava, which is not installed: {INSTALL}")


def indices(values: Sequence[float], least_change: float) -> tuple[int, ...]:
    """Index of the first value of each new level, ascending. `least_change`: the smallest relative change of
    the mean (0.02 is 2 %). Raises EnvironmentFault without Otava.
    """
    require()
    from otava.analysis import compute_change_points

    # A list: given an array, Otava would scan all of it in each window.
    points, _ = compute_change_points([float(value) for value in values], WINDOW, MOST_P_VALUE, least_change)
    return tuple(sorted(int(point.index) for point in points))
