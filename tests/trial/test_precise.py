"""A window ends when its figure is known precisely enough, and not by luck of its first seconds."""

from __future__ import annotations

import numpy as np

from prony.evidence.engine import IntervalRow
from prony.plan.load import ClosedLoad, OpenLoad, SteadyWindow, WholeRun
from prony.plan.trial import TrialPlan
from prony.plan.workload import from_url
from prony.steady.precision import LEAST_ROWS
from prony.trial.warming import PreciseEnough


def plan(precision: float | None, *, open_loop: bool = False) -> TrialPlan:
    load = OpenLoad(rate_per_s=100) if open_loop else ClosedLoad(users=2)
    measured = SteadyWindow(window_s=300, precision=precision)
    return TrialPlan(workload=from_url("/"), load=load, measured=measured)


def rows_until_precise(watch: PreciseEnough, noise: float) -> int:
    rng = np.random.default_rng(5)
    for count in range(1, 301):
        rate = 1000 * (1 + noise * rng.standard_normal())
        row = IntervalRow(
            t_ms=count * 1000.0, duration_ms=1000.0, completed=round(rate), p50_ns=round(1e6 * rate)
        )
        if watch(row):
            return count
    return 301


def test_noise_decides_how_long_it_takes() -> None:
    for open_loop in (False, True):
        quiet, noisy = (
            rows_until_precise(watch, noise)
            for noise in (0.003, 0.08)
            if (watch := PreciseEnough.of(plan(0.02, open_loop=open_loop))) is not None
        )
        assert quiet == LEAST_ROWS
        assert 40 < noisy < 200


def test_without_a_precision_and_in_a_whole_run_nothing_ends_it() -> None:
    assert PreciseEnough.of(plan(None)) is None
    whole = plan(0.02).model_copy(update={"measured": WholeRun(duration_s=3)})
    assert PreciseEnough.of(whole) is None
