"""Windows of servers whose plateau is known, in small: the printed bounds hold residual drift."""

from __future__ import annotations

import numpy as np
import pytest

from prony_selftest.steady_tables import REPRODUCED, reproduced, share
from prony_selftest.steady_windows import FULL, SEED, Protocol, Server


@pytest.mark.parametrize(("description", "server", "protocol"), REPRODUCED)
@pytest.mark.rarely
def test_the_bounds_of_a_window_that_looks_level_hold_what_is_to_come(
    description: str, server: Server, protocol: Protocol
) -> None:
    trials = 20 if protocol.window_s == 10 else 3
    windows = reproduced(server, protocol, trials, np.random.default_rng(SEED))
    assert sum(window.off for window in windows) >= 0.8 * trials, description
    assert sum(window.covered for window in windows) >= 0.9 * trials, description
    assert all(window.half > 0.01 for window in windows if window.off), description


@pytest.mark.rarely
def test_the_bounds_of_a_level_server_are_narrow_after_the_full_warm_up() -> None:
    windows = reproduced(Server(0.0, 10.0, 0.005, 0.0), FULL, 4, np.random.default_rng(SEED))
    assert sum(window.covered and window.half < 0.03 for window in windows) >= 3
    assert not any(window.off for window in windows)


def test_every_share_has_its_lower_bound() -> None:
    assert share(2, 2) == "100 % (2 of 2, at least 22 %)"
    assert share(0, 6) == "0 % (0 of 6, at least 0 %)"
    assert share(0, 0) == "none"
