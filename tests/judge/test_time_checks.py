"""steady: what changed inside the window."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from prony.evidence.engine import IntervalRow
from prony.evidence.trial import Evidence, Phase
from prony.judge.check import Check
from prony.judge.checks.steady import SteadyWindowLimits, _more, _to_come, steady, whole_trial
from prony.judge.drift import level_stretch
from prony.judge.finding import Finding, Status
from prony.judge.limits import CheckLimits
from prony.steady.approach import Approach
from tests.judge import factory as f

LIMITS = CheckLimits()


def found_by(check: Check[Finding | None], evidence: Evidence) -> Finding:
    """What the check says of evidence to which it applies."""
    finding = check(evidence, LIMITS)
    assert finding is not None
    return finding


def long_window(rates: list[float]) -> Evidence:
    """A window over exactly these rows, after ten rows of something else."""
    made = f.rows([1000.0] * 10 + rates)
    return f.window(f.engine(f.healthy(), rows=made), opened_ms=10_000.0, duration_s=float(len(rates)))


class TestSteady:
    def test_quiet(self) -> None:
        finding = found_by(steady, f.healthy())
        assert finding.status is Status.VALID
        assert "still to come (95 %, from 50 rows" in finding.reason

    def test_a_bound_above_everything_is_not_printed_as_a_figure(self) -> None:
        wild = Approach(0.0, 21.1, math.inf, 0.2, 0.9, 12)
        assert _to_come(wild).startswith("what is still to come cannot be bounded (95 %")
        assert _to_come(replace(wild, bound=0.02)).startswith("at most 2")

    def test_exact_rows_are_level(self) -> None:
        assert found_by(steady, long_window([8000.0] * 30)).status is Status.VALID

    def test_noise_that_hides_a_change_is_no_proof_that_there_is_none(self) -> None:
        """Level rows, but too few of them: nothing is found, and nothing is shown."""
        finding = found_by(steady, long_window(f.noisy(8000, 12, 0.01, seed=3)))
        assert finding.status is Status.UNKNOWN
        assert finding.reason.startswith("what is still to come cannot"), "what decided"
        assert "; no change above the limit in 12 rows (a step below" in finding.reason
        assert "would not show" in finding.reason
        assert re.search(r"for about \d+ s more", finding.advice)
        longer = found_by(steady, long_window(f.noisy(8000, 150, 0.01, seed=3)))
        assert (longer.status, longer.advice) == (Status.VALID, "")

    def test_a_fit_within_its_own_error_is_no_level_that_moves(self) -> None:
        """ "Warm up longer: the fit says..." stood beside "flat, level since 0 s"."""
        limits = SteadyWindowLimits()
        level = level_stretch(long_window(f.noisy(8000, 12, 0.01, seed=3)), limits.steady)
        within = _more(Approach(0.05, 0.2, math.inf, 0.01, 0.0, 12), level, limits)
        assert re.search(r"for about \d+ s more", within)
        beyond = _more(Approach(-0.05, 0.08, 20.0, 0.01, 0.0, 12), level, limits)
        assert beyond == "warm up longer: the level is still moving, with about 5.13 % to come"

    def test_a_trial_without_a_step_is_called_nothing_more(self) -> None:
        rows = f.rows(f.noisy(8000, 60, 0.01, seed=2))
        evidence = f.window(f.engine(f.healthy(), rows=rows), opened_ms=30_000.0, duration_s=30.0)
        quiet = found_by(steady, evidence.model_copy(update={"phases": ()}))
        assert "; no change of level seen from the first request on" in quiet.reason
        assert "flat" not in quiet.reason

    def test_what_the_cap_of_the_warm_up_cut_off_is_said(self) -> None:
        capped = f.part(long_window(f.noisy(8000, 12, 0.01, seed=3)), "warm_up", still_to_come=0.2)
        assert "the warm-up ended at its cap, with up to 22.1 % to come" in found_by(steady, capped).reason

    @pytest.mark.parametrize(
        ("step", "status"), [(1.05, Status.SUSPECT), (0.95, Status.SUSPECT), (1.3, Status.INVALID)]
    )
    def test_a_step_fires(self, step: float, status: Status) -> None:
        rates = np.array(f.noisy(8000, 30, 0.01, seed=3))
        rates[15:] *= step
        finding = found_by(steady, long_window(list(rates)))
        assert finding.status is status
        assert finding.value == pytest.approx(abs(step - 1), rel=0.25)
        assert "stepped" in finding.reason

    def test_a_warm_up_that_goes_on_fires(self) -> None:
        rates = np.array(f.noisy(8000, 30, 0.01, seed=4)) * np.linspace(0.9, 1.0, 30)
        finding = found_by(steady, long_window(list(rates)))
        assert finding.status in {Status.SUSPECT, Status.INVALID}
        assert "warm up longer" in finding.advice

    def test_a_slowdown_fires(self) -> None:
        rates = np.array(f.noisy(8000, 60, 0.01, seed=5)) * np.exp(-0.002 * np.arange(60))
        finding = found_by(steady, long_window(list(rates)))
        assert finding.status in {Status.SUSPECT, Status.INVALID}

    def test_p50_alone_fires(self) -> None:
        """An open loop keeps its rate while the server gets slower."""
        rng = np.random.default_rng(6)
        made = tuple(
            row.model_copy(
                update={"p50_ns": int(1e6 * (1.2 if i >= 25 else 1.0) * np.exp(0.01 * rng.normal()))}
            )
            for i, row in enumerate(f.rows([8000.0] * 40))
        )
        evidence = f.window(f.engine(f.healthy(), rows=made), opened_ms=10_000.0, duration_s=30.0)
        finding = found_by(steady, evidence)
        assert finding.status is Status.INVALID
        assert finding.reason.startswith("p50 stepped by +20")

    def test_what_happens_outside_the_window_is_not_its_business(self) -> None:
        cold = f.rows(f.noisy(2000, 10, 0.01)) + f.rows(f.noisy(8000, 42, 0.003), first_s=10)
        assert found_by(steady, f.engine(f.healthy(), rows=cold)).status is Status.VALID

    def test_partial_rows_at_the_borders_are_left_out(self) -> None:
        """The row in which the window opened belongs to both worlds."""
        made = list(f.rows([8000.0] * 52))
        made[40] = made[40].model_copy(update={"completed": 1000})
        made[50] = made[50].model_copy(update={"completed": 1000})
        assert found_by(steady, f.engine(f.healthy(), rows=tuple(made))).status is Status.VALID

    def test_a_short_window_is_unknown(self) -> None:
        short = f.window(f.healthy(), duration_s=4.0)
        assert found_by(steady, short).status is Status.UNKNOWN

    def test_never_steady_and_drifting_is_suspect(self) -> None:
        rates = np.array(f.noisy(8000, 12, 0.02, seed=2)) * np.linspace(0.95, 1.0, 12)
        drifting = long_window(list(rates))
        assert found_by(steady, drifting).status is Status.UNKNOWN  # too little to tell
        never = f.part(drifting, "warm_up", steady=False)
        finding = found_by(steady, never)
        assert finding.status is Status.SUSPECT
        assert finding.reason.startswith(
            "never steady within 60 s of warm-up; a trend over the window that is not significant by itself "
            "(throughput +6.57 %, p50 -6.17 %) in 12 rows"
        )

    def test_a_watch_that_only_saw_noise_convicts_nobody(self) -> None:
        assert found_by(steady, f.part(f.healthy(), "warm_up", steady=False)).status is Status.VALID

    def test_seconds_without_a_response(self) -> None:
        rates = [8000.0] * 30
        rates[7] = 0.0
        finding = found_by(steady, long_window(rates))
        assert finding.status is Status.VALID  # one silent second is a stall, not a change of level

    def test_what_could_not_have_shown_ten_percent_is_unknown(self) -> None:
        """Twelve rows that differ by 8 %: a step that would make the figure worthless could hide in them."""
        finding = found_by(steady, long_window(f.noisy(8000, 12, 0.08, seed=3)))
        assert finding.status is Status.UNKNOWN
        assert "would not show" in finding.reason

    def test_in_an_open_loop_it_is_p50_that_must_show_it(self) -> None:
        """The rate is given there, so that it shows nothing of the server."""
        rng = np.random.default_rng(1)
        loose = tuple(
            row.model_copy(update={"p50_ns": int(1e6 * np.exp(0.2 * rng.normal()))})
            for row in f.rows([8000.0] * 30)
        )
        evidence = f.window(f.engine(f.open_model(), rows=loose), opened_ms=0.0, duration_s=30.0)
        assert found_by(steady, evidence).status is Status.UNKNOWN
        closed = f.window(f.engine(f.healthy(), rows=loose), opened_ms=0.0, duration_s=30.0)
        assert found_by(steady, closed).status is Status.VALID

    def test_the_whole_trial_has_a_class(self) -> None:
        cold = f.rows(f.noisy(2000, 20, 0.01) + f.noisy(8000, 40, 0.01, seed=2))
        evidence = f.window(f.engine(f.healthy(), rows=cold), opened_ms=30_000.0, duration_s=30.0)
        alone = evidence.model_copy(update={"phases": ()})
        found = whole_trial(alone)
        assert found is not None
        assert (found.klass, found.since_ms) == ("warm-up", 20_000.0)
        assert "from the first request: warm-up, level since 20 s" in found_by(steady, alone).reason

    def test_time_on_other_cpus_is_no_part_of_it(self) -> None:
        """Twice as fast on two CPUs while warming up, then moved: not a slowdown of the server."""
        rates = f.noisy(16_000, 20, 0.01) + f.noisy(8000, 40, 0.01, seed=2)
        evidence = f.window(f.engine(f.healthy(), rows=f.rows(rates)), opened_ms=30_000.0, duration_s=30.0)
        phases = (
            Phase(name="warm-up", start_ms=0, end_ms=20_000, server_cpus=(0, 1)),
            Phase(name="settle", start_ms=20_000, end_ms=30_000, server_cpus=(0,)),
            Phase(name="window", start_ms=30_000, end_ms=60_000, server_cpus=(0,)),
        )
        found = whole_trial(evidence.model_copy(update={"phases": phases}))
        assert found is not None
        assert found.klass == "flat"

    def test_eight_hours_are_looked_at_in_a_moment(self) -> None:
        rates = np.array(f.noisy(8000, 28_800, 0.03, seed=8))
        assert found_by(steady, long_window(list(rates))).status is Status.VALID
        rates[14_000:] *= 0.97
        assert found_by(steady, long_window(list(rates))).status is Status.SUSPECT

    def test_integer_noise_of_a_slow_server(self) -> None:
        """66 or 67 responses a second from ten users and 150 ms: rounding, not a change."""
        counts = np.diff(np.floor(np.arange(91) * 66.67))
        made: list[IntervalRow] = []
        for row in f.rows([float(c) for c in counts]):
            made.append(row.model_copy(update={"p50_ns": 150_000_000}))
        evidence = f.window(f.engine(f.healthy(), rows=tuple(made)), opened_ms=0.0, duration_s=90.0)
        assert found_by(steady, evidence).status is Status.VALID
