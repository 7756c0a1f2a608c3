"""steady and warm: residual drift after the window, and what was being compiled in it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from prony.evidence.engine import IntervalRow
from prony.evidence.trial import Evidence
from prony.judge.check import Check
from prony.judge.checks.steady import steady
from prony.judge.checks.warm import warm
from prony.judge.finding import Finding, Plateau
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

LIMITS = CheckLimits()


def found_by(check: Check[Finding | None], evidence: Evidence) -> Finding:
    """What the check says of evidence to which it applies."""
    finding = check(evidence, LIMITS)
    assert finding is not None
    return finding


def long_window(rates: list[float], before: list[float] | None = None) -> Evidence:
    """A window over exactly these rows, after these (ten of another level)."""
    first = [1000.0] * 10 if before is None else before
    made = f.rows([*first, *rates])
    opened_ms = 1000.0 * len(first)
    return f.window(f.engine(f.healthy(), rows=made), opened_ms=opened_ms, duration_s=float(len(rates)))


def plateau(finding: Finding, figure: str = "requests_per_s") -> Plateau:
    return finding.plateau[figure]


class TestSteady:
    def test_a_level_window_is_bounded_on_both_sides(self) -> None:
        finding = found_by(steady, f.healthy())
        assert (finding.code, finding.conforms, finding.bias) == ("level", True, {})
        found = plateau(finding)
        assert found.low is not None
        assert found.high is not None
        assert -0.1 < found.low < 0 < found.high < 0.1
        assert found.horizon_s == 60

    def test_exact_rows_do_not_move(self) -> None:
        found = plateau(found_by(steady, long_window([8000.0] * 30)))
        assert found.low == pytest.approx(0, abs=0.01)
        assert found.high == pytest.approx(0, abs=0.01)

    def test_few_noisy_rows_leave_much_to_come_and_say_what_bounds_it(self) -> None:
        few = found_by(steady, long_window(f.noisy(8000, 12, 0.01, seed=3)))
        many = found_by(steady, long_window(f.noisy(8000, 150, 0.01, seed=3)))
        assert (plateau(few).high or math.inf) > 3 * (plateau(many).high or 0)
        assert few.advice
        assert few.conforms

    @pytest.mark.parametrize("seed", range(5))
    def test_a_creeping_plateau_is_held(self, seed: int) -> None:
        """15 % to come, a time constant of 60 s, 1.5 % noise, a window of 10 s."""
        at = np.arange(10) + 0.5
        level = 8000 * (1 - 0.15 * np.exp(-at / 60.0))
        rates = level * np.exp(0.015 * np.random.default_rng(seed).standard_normal(10))
        found = plateau(found_by(steady, long_window(list(rates), before=[])))
        then = 8000 * (1 - 0.15 * math.exp(-70 / 60.0)) / float(level.mean()) - 1
        assert found.low is None or found.low <= then
        assert found.high is None or found.high >= then

    def test_a_warm_up_that_goes_on_is_moving(self) -> None:
        rates = np.array(f.noisy(8000, 40, 0.003, seed=4)) * np.linspace(0.8, 1.0, 40)
        finding = found_by(steady, long_window(list(rates)))
        assert finding.code == "moving"
        assert (plateau(finding).low or 0) > 0
        # The mean time falls as the rate rises.
        assert (plateau(finding, "mean_ms").high or 0) < 0

    @pytest.mark.parametrize("step", [1.05, 0.95, 1.3])
    def test_a_step_within_the_window_is_named_and_widens_what_is_to_come(self, step: float) -> None:
        rates = np.array(f.noisy(8000, 30, 0.01, seed=3))
        level = plateau(found_by(steady, long_window(list(rates))))
        rates[15:] *= step
        finding = found_by(steady, long_window(list(rates)))
        assert finding.code in {"stepped", "moving"}
        assert finding.conforms
        found = plateau(finding)
        width = (found.high or math.inf) - (found.low or -1.0)
        assert width > (level.high or 0) - (level.low or 0)

    def test_p50_tells_of_times_where_the_rate_is_given(self) -> None:
        """An open loop keeps its rate while the server gets slower."""
        rng = np.random.default_rng(6)
        made = tuple(
            row.model_copy(update={"p50_ns": int(1e6 * math.exp(0.01 * i) * np.exp(0.005 * rng.normal()))})
            for i, row in enumerate(f.rows([8000.0] * 40))
        )
        evidence = f.window(f.engine(f.open_model(), rows=made), opened_ms=10_000.0, duration_s=30.0)
        finding = found_by(steady, evidence)
        assert finding.code == "moving"
        assert "requests_per_s" not in finding.plateau
        assert (plateau(finding, "p50_ms").low or 0) > 0

    def test_p99_has_a_plateau_of_its_own(self) -> None:
        grows = tuple(
            row.model_copy(update={"p99_ns": int(2e6 * 1.05**at)})
            for at, row in enumerate(f.rows(f.noisy(8000, 40, 0.005)))
        )
        evidence = f.window(f.engine(f.healthy(), rows=grows), opened_ms=10_000.0, duration_s=30.0)
        finding = found_by(steady, evidence)
        low = plateau(finding, "p99_ms").low
        assert low is None or low > 0.5
        assert (plateau(finding, "p50_ms").high or 0) < 0.2

    def test_what_happens_outside_the_window_is_not_its_business(self) -> None:
        cold = f.rows(f.noisy(2000, 10, 0.01)) + f.rows(f.noisy(8000, 42, 0.003), first_s=10)
        assert found_by(steady, f.engine(f.healthy(), rows=cold)).code == "level"

    def test_partial_rows_at_the_borders_are_left_out(self) -> None:
        """The row in which the window opened belongs to both worlds."""
        made = list(f.rows([8000.0] * 52))
        made[40] = made[40].model_copy(update={"completed": 1000})
        made[50] = made[50].model_copy(update={"completed": 1000})
        assert found_by(steady, f.engine(f.healthy(), rows=tuple(made))).code == "level"

    def test_too_few_rows_bound_nothing_and_the_window_conforms_all_the_same(self) -> None:
        short = long_window([8000.0, 8010.0, 7990.0, 8005.0], before=[])
        finding = found_by(steady, short)
        assert (finding.code, finding.conforms) == ("too_short", True)
        assert (plateau(finding).low, plateau(finding).high) == (None, None)

    def test_a_fixed_protocol_claims_no_plateau(self) -> None:
        finding = found_by(steady, f.part(f.healthy(), "load", claim="protocol"))
        assert (finding.code, finding.plateau) == ("protocol", {})

    def test_a_rate_that_changes_by_plan_has_none(self) -> None:
        assert steady(f.part(f.open_model(), "load", phased=True), LIMITS) is None

    def test_a_silent_second_is_no_change_of_level(self) -> None:
        rates = [8000.0] * 30
        rates[7] = 0.0
        assert found_by(steady, long_window(rates)).code == "level"

    def test_eight_hours_take_a_moment_and_say_their_drift(self) -> None:
        rates = np.array(f.noisy(8000, 28_800, 0.03, seed=8))
        level = plateau(found_by(steady, long_window(list(rates))))
        assert (level.high or 1) < 0.01
        rates[14_000:] *= 0.97
        assert found_by(steady, long_window(list(rates))).code in {"stepped", "moving"}

    def test_integer_noise_of_a_slow_server(self) -> None:
        """66 or 67 responses a second from ten users and 150 ms: rounding, not a change."""
        counts = np.diff(np.floor(np.arange(91) * 66.67))
        made: list[IntervalRow] = []
        for row in f.rows([float(c) for c in counts]):
            made.append(row.model_copy(update={"p50_ns": 150_000_000}))
        evidence = f.window(f.engine(f.healthy(), rows=tuple(made)), opened_ms=0.0, duration_s=90.0)
        assert found_by(steady, evidence).code == "level"

    def test_no_window(self) -> None:
        assert not found_by(steady, f.engine(f.healthy(), window=None)).conforms


class TestWarm:
    def jit(self, seconds: float, classes: int = 0) -> Evidence:
        return f.part(
            f.healthy(),
            "server_window",
            jvm_open=f.snapshot(40, 20.0),
            jvm_close=f.snapshot(50, 20.0 + seconds, classes=9000 + classes),
        )

    def starved(self, waited_s: float = 4.98) -> Evidence:
        """Compilations took so long, and 0.02 s of CPU; the warm-up went from 2,000/s to 8,000/s."""
        opened = f.snapshot(40, 20.0).model_copy(update={"compilers_cpu_s": 7.0})
        closed = f.snapshot(50, 20.02 + waited_s).model_copy(update={"compilers_cpu_s": 7.02})
        made = f.part(f.healthy(), "server_window", jvm_open=opened, jvm_close=closed)
        return f.engine(made, rows=f.rows([2000.0] * 20 + [8000.0] * 32))

    def test_quiet(self) -> None:
        finding = found_by(warm, f.healthy())
        assert finding.code == "ok"
        assert finding.of("requests_per_s").size < 0.01

    @pytest.mark.parametrize("seconds", [0.2, 2.0])
    def test_compiling_took_its_share_of_a_full_cpu(self, seconds: float) -> None:
        finding = found_by(warm, self.jit(seconds))
        share = seconds / 9.6
        assert (finding.code, finding.conforms) == ("compiling", True)
        assert finding.value == pytest.approx(share)
        assert finding.of("requests_per_s").up == pytest.approx(-math.log(1 - share))
        assert finding.of("requests_per_s").down == 0
        assert finding.of("mean_ms").down == pytest.approx(-math.log(1 - share))
        assert finding.of("server_cpu_us_per_request").down == pytest.approx(-math.log(1 - share))
        # What the requests would have had of the CPU without it is within the bound, exactly.
        assert (finding.bias["requests_per_s"].high or 0) + 1 == pytest.approx(9.6 / (9.6 - seconds))

    def test_more_elapsed_time_than_cpu_bounds_nothing(self) -> None:
        """The JVM counts elapsed time; starved, that is more than the CPU time there was."""
        finding = found_by(warm, self.jit(40.0))
        assert finding.value == 1.0
        assert finding.bias["requests_per_s"].high is None

    def test_the_compilers_cpu_time_counts_where_it_was_read(self) -> None:
        """Not the ten seconds in which a compilation waited for a CPU."""
        opened = f.snapshot(40, 20.0).model_copy(update={"compilers_cpu_s": 7.0})
        closed = f.snapshot(50, 22.0).model_copy(update={"compilers_cpu_s": 7.3})
        finding = found_by(warm, f.part(f.healthy(), "server_window", jvm_open=opened, jvm_close=closed))
        assert finding.code == "compiling"
        assert finding.value == pytest.approx(0.3 / 9.6)

    def test_a_starved_compiler_is_bounded_by_what_the_warm_up_brought(self) -> None:
        """For half of the window compilations waited, and the warm-up made the server four times as fast."""
        finding = found_by(warm, self.starved())
        assert finding.code == "starved"
        gain = math.log1p(0.498 * (4 - 1))
        assert finding.of("requests_per_s").up == pytest.approx(gain, rel=0.02)
        assert finding.advice

    def test_without_a_warm_up_a_starved_compiler_is_not_bounded(self) -> None:
        made = f.window(self.starved(), opened_ms=0.0)
        assert found_by(warm, made).bias["requests_per_s"].high is None

    def test_a_compilation_that_waits_now_and_then_is_none_to_speak_of(self) -> None:
        assert found_by(warm, self.starved(waited_s=1.0)).code == "ok"

    def test_class_loading_counts(self) -> None:
        assert found_by(warm, self.jit(0.0, classes=100)).code == "ok"
        assert found_by(warm, self.jit(0.0, classes=500)).code == "compiling"
