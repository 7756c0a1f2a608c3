"""Windows of servers whose plateau is known, in small: off ones are not called valid, level ones are."""

from __future__ import annotations

import numpy as np
import pytest

from prony.selftest.steady_tables import REPRODUCED, reproduced, share
from prony.selftest.steady_windows import FULL, SEED, Lab, Server


@pytest.mark.parametrize(("told", "server", "lab"), REPRODUCED)
def test_a_window_below_its_plateau_is_not_called_valid(told: str, server: Server, lab: Lab) -> None:
    """97 and 92 % of these were."""
    trials = 20 if lab.window_s == 10 else 3
    found = reproduced(server, lab, trials, np.random.default_rng(SEED))
    assert sum(one.off for one in found) >= 0.8 * trials, told
    assert not any(one.valid for one in found if one.off), told


def test_a_level_server_is_called_valid_after_the_full_warm_up() -> None:
    found = reproduced(Server(0.0, 10.0, 0.005, 0.0), FULL, 4, np.random.default_rng(SEED))
    assert sum(one.valid for one in found) >= 3
    assert not any(one.off for one in found)


def test_every_share_has_its_upper_bound() -> None:
    assert share(0, 2) == "0 % (0 of 2, at most 78 %)"
    assert share(6, 6) == "100 % (6 of 6, at most 100 %)"
    assert share(0, 0) == "none"
