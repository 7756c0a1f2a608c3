"""errors, little, think: each fires on its trouble and keeps quiet without it. A bound
holds what the figure is without the trouble.
"""

from __future__ import annotations

import numpy as np
import pytest

from prony.evidence.engine import ScriptReport, Window
from prony.evidence.trial import Evidence
from prony.judge.checks.errors import ErrorsLimits, errors
from prony.judge.checks.little import LittleLimits, little
from prony.judge.checks.think import think
from prony.judge.finding import Kind
from prony.judge.histogram import decode
from prony.judge.limits import CheckLimits
from tests.judge import factory as f
from tests.judge.factory import kind_and_code as kind_code
from tests.judge.factory import present

LIMITS = CheckLimits()
NOT_CONFORMING, BUDGET, PROVIDED, FINE = Kind


class TestErrors:
    def test_quiet_without_failures(self) -> None:
        finding = errors(f.healthy(), LIMITS)
        assert kind_code(finding) == (FINE, "ok")
        assert (finding.value, finding.bias) == (0, {})

    @pytest.mark.parametrize(("failed", "kind"), [(1, FINE), (800, BUDGET), (900, NOT_CONFORMING)])
    def test_fires_by_share(self, failed: int, kind: Kind) -> None:
        broken = f.window(f.healthy(), failed=failed, completed=80_000 - failed, errors={"timeout": failed})
        finding = errors(broken, LIMITS)
        assert kind_code(finding) == (kind, "failed")
        assert finding.value == pytest.approx(failed / 80_000)

    def test_users_who_wait_for_what_times_out_ask_nothing_else_meanwhile(self) -> None:
        """10 users for 10 s, of which timeouts took 20: without them 80,000 requests of 1.25 ms."""
        times = f.of_values([1_250_000] * 64_000 + [1_000_000_000] * 20)
        broken = f.window(
            f.healthy(), completed=64_000, failed=20, errors={"timeout": 20}, service_time=times,
            lost_time_sum_s=20.0, clipped_cycle_s=100.0, clipped_turnaround_s=0.0,
        )  # fmt: skip
        finding = errors(broken, LIMITS)
        assert kind_code(finding) == (BUDGET, "failed")
        share = 20 / 64_020
        rate, mean = finding.bias["requests_per_s"], finding.bias["mean_ms"]
        assert rate.high == pytest.approx(1 / (0.8 * (1 - share)) - 1)
        assert rate.low == pytest.approx(-share)
        assert 64_000 * (1 + (rate.high or 0.0)) >= 80_000
        assert times.mean_ns is not None
        assert mean.low == pytest.approx(1.25e6 / times.mean_ns - 1, rel=0.01)
        assert finding.of("p99_ms").high == 0, "failed requests count as the longest already"
        untold = f.window(broken, lost_time_sum_s=None)
        assert errors(untold, LIMITS).bias["requests_per_s"].high is None
        opened = f.part(broken, "load", model="open", users=None)
        high = errors(f.window(opened, latency=times), LIMITS).bias["requests_per_s"].high
        assert high == pytest.approx(1 / (1 - share) - 1), "whose rate is not the users'"

    def test_fast_error_pages_hide_the_time_of_right_responses(self) -> None:
        """800 of 80,000 took 0.01 ms in place of what the others take: 1 to 100 ms evenly."""
        right = [ms * 1_000_000 for ms in range(1, 101)]
        times = f.of_values(right * 792 + [10_000] * 800)
        fast = f.window(f.healthy(), status={"200": 79_200, "503": 800}, service_time=times)
        finding = errors(fast, LIMITS)
        assert kind_code(finding) == (BUDGET, "failed")
        for name, percentile in {"p50_ms": 50, "p90_ms": 90, "p95_ms": 95}.items():
            measured = decode(times).percentile_ns(percentile)
            high = finding.bias[name].high
            assert measured is not None
            assert high is not None
            # Percentile p of all, so p + 1 %: a value higher, as there are 100 of them.
            assert measured * (1 + high) == pytest.approx(measured + 1e6, rel=0.002)
            assert measured * (1 + high) >= percentile * 1e6
        assert finding.bias["p99_ms"].high is None, "nothing bounds it within the sample"

    def test_a_missed_expectation_is_one_request_and_content_tells_its_bias(self) -> None:
        declared = f.part(f.healthy(), "load", content_declared=True)
        broken = f.window(declared, failed=400, errors={"expect_body": 400})
        finding = errors(broken, LIMITS)
        assert finding.value == pytest.approx(400 / 80_000)
        assert (finding.conforms, finding.bias) == (True, {})

    def test_fast_503s_count_though_nobody_declared_anything(self) -> None:
        broken = f.window(f.healthy(), status={"200": 78_400, "503": 1600})
        assert kind_code(errors(broken, LIMITS)) == (NOT_CONFORMING, "failed")

    def test_a_declared_404_is_a_response(self) -> None:
        declared = f.part(f.window(f.healthy(), status={"404": 80_000}), "load", content_declared=True)
        assert kind_code(errors(declared, LIMITS)) == (FINE, "ok")

    def test_silence_does_not_conform(self) -> None:
        silent = f.window(f.healthy(), completed=0, status={})
        assert kind_code(errors(silent, LIMITS)) == (NOT_CONFORMING, "none_completed")

    def test_without_a_window_there_is_no_figure(self) -> None:
        finding = errors(f.engine(f.healthy(), window=None), LIMITS)
        assert kind_code(finding) == (NOT_CONFORMING, "no_window")

    @pytest.mark.parametrize("kind", ["client", "answer_memory", "tls", "connect_refused", "protocol"])
    def test_each_kind_has_its_advice(self, kind: str) -> None:
        one = errors(f.window(f.healthy(), errors={kind: 5, "read": 2}, failed=7), LIMITS)
        other = errors(f.window(f.healthy(), errors={kind: 2, "read": 5}, failed=7), LIMITS)
        assert one.advice
        assert one.advice != other.advice

    def test_errors_outside_the_window_do_not_decide(self) -> None:
        assert kind_code(errors(f.totals(f.healthy(), failed=7), LIMITS)) == (FINE, "ok")

    def test_limits_can_be_set(self) -> None:
        broken = f.window(f.healthy(), failed=900, errors={"read": 900})
        assert errors(broken, ErrorsLimits(errors_share_max=0.02)).conforms
        assert not errors(broken, ErrorsLimits()).conforms


class TestLittle:
    def test_quiet_when_all_users_are_there(self) -> None:
        finding = little(f.healthy(), LIMITS)
        assert kind_code(finding) == (FINE, "ok")
        assert finding.value == pytest.approx(-0.0005)

    @pytest.mark.parametrize(("simulated", "code"), [(13_092, "users_missing"), (17_000, "too_many_users")])
    def test_fires_when_users_are_missing_or_too_many(self, simulated: int, code: str) -> None:
        crowd = f.part(f.healthy(), "load", users=16_000)
        broken = f.window(crowd, clipped_cycle_s=simulated * f.WINDOW_S, clipped_turnaround_s=0.0)
        finding = little(broken, LIMITS)
        assert kind_code(finding) == (NOT_CONFORMING, code)
        assert finding.value == pytest.approx(simulated / 16_000 - 1)

    def test_the_clients_own_time_and_connecting_are_user_time(self) -> None:
        # 57.3 of 64 users in flight (a fast server), and the connections of one user with 19 requests.
        fast = f.part(f.healthy(), "load", users=64)
        cycles = {"clipped_cycle_s": 573.0, "clipped_turnaround_s": 66.8, "completed": 1_000_000}
        assert little(f.window(fast, **cycles), LIMITS).kind is FINE
        without = {**cycles, "clipped_turnaround_s": 0.0}
        assert little(f.window(fast, **without), LIMITS).kind is NOT_CONFORMING
        one = f.part(f.healthy(), "load", users=1)
        parts = {"clipped_cycle_s": 2.3, "clipped_connect_s": 7.5, "clipped_turnaround_s": 0.18}
        assert little(f.window(one, **parts, completed=19), LIMITS).kind is FINE

    def test_users_who_are_gone_are_not_explained_by_the_clients_own_time(self) -> None:
        gone = f.window(f.healthy(), clipped_cycle_s=88.0, clipped_turnaround_s=1.9, clipped_back_off_s=10.0)
        assert kind_code(little(gone, LIMITS)) == (NOT_CONFORMING, "users_missing")

    def test_an_engine_that_did_not_count_turnaround_leaves_a_deficit_open(self) -> None:
        old = f.window(f.healthy(), clipped_cycle_s=90.0, clipped_turnaround_s=None, clipped_connect_s=None)
        finding = little(old, LIMITS)
        assert kind_code(finding) == (PROVIDED, "unread")
        assert finding.value == pytest.approx(-0.1)
        more = f.window(old, clipped_cycle_s=103.0)
        assert little(more, LIMITS).kind is NOT_CONFORMING

    def test_fires_when_the_integral_contradicts_the_service_times(self) -> None:
        for by in (0.8, 1.2):
            broken = f.window(f.healthy(), in_flight_integral_s=f.USERS * f.WINDOW_S * by)
            assert kind_code(little(broken, LIMITS)) == (NOT_CONFORMING, "counters_disagree")

    def test_time_spent_in_failed_requests_is_counted(self) -> None:
        failing = {"in_flight_integral_s": 120.0, "failed": 4, "errors": {"timeout": 4}}
        assert little(f.window(f.healthy(), **failing), LIMITS).kind is NOT_CONFORMING
        counted = f.window(f.healthy(), **failing, lost_time_sum_s=19.96)
        assert little(counted, LIMITS).kind is FINE

    @pytest.mark.parametrize(
        "part", ["service_time_sum_s", "lost_time_sum_s", "in_flight_age_open_s", "in_flight_age_close_s"]
    )
    def test_books_that_lack_a_part_are_a_condition(self, part: str) -> None:
        broken = f.window(f.healthy(), **{part: None, "in_flight_integral_s": 120.0})
        assert kind_code(little(broken, LIMITS)) == (PROVIDED, "unread")

    def test_a_freeze_over_the_end_of_the_window_is_in_the_ages(self) -> None:
        # 10 users and a freeze of 240 ms that begins 120 ms before the end of a window of 10 s.
        freeze = {"service_time_sum_s": 98.8, "in_flight_integral_s": 100.0}
        ages = {"in_flight_age_open_s": 0.006, "in_flight_age_close_s": 1.206}
        assert kind_code(little(f.window(f.healthy(), **freeze, **ages), LIMITS)) == (FINE, "ok")
        lost_count = {**ages, "in_flight_age_close_s": 0.006}
        assert little(f.window(f.healthy(), **freeze, **lost_count), LIMITS).kind is NOT_CONFORMING

    def test_one_request_that_lasts_longer_than_the_window_is_in_the_ages_alone(self) -> None:
        ages = {"in_flight_age_open_s": 30.0, "in_flight_age_close_s": 130.0}
        long = f.window(f.healthy(), service_time_sum_s=0.0, in_flight_integral_s=100.0, **ages)
        assert little(long, LIMITS).kind is FINE

    def test_the_second_form_alone_cannot_be_a_pass_in_a_closed_loop(self) -> None:
        assert little(f.window(f.healthy(), clipped_cycle_s=None), LIMITS).kind is PROVIDED

    def test_only_the_second_form_in_an_open_model(self) -> None:
        assert kind_code(little(f.window(f.open_model(), clipped_cycle_s=None), LIMITS)) == (FINE, "ok")

    def test_users_who_leave_after_their_iterations_are_not_missed(self) -> None:
        leaving = f.rows([f.RATE] * 52)
        leaving = tuple(r.model_copy(update={"users": 10 if r.t_ms <= 45_000 else 4}) for r in leaving)
        ended = f.engine(f.healthy(), rows=leaving, reason="iterations")
        assert ended.engine is not None
        # 4.7 s with 10 users, one row on the way down, the rest with 4
        user_s = 4.7 * 10 + 1 * 7 + 4.3 * 4
        ended = f.window(ended, clipped_cycle_s=user_s, users=4)
        assert little(ended, LIMITS).kind is FINE
        stopped = f.engine(ended, reason="stopped")
        assert little(stopped, LIMITS).kind is NOT_CONFORMING
        # A script may send them home (thread:stop()), though not by its faults.
        assert little(f.engine(stopped, script=ScriptReport()), LIMITS).kind is FINE
        faulty = f.engine(stopped, script=ScriptReport(error="x.lua:1"))
        assert kind_code(little(faulty, LIMITS)) == (NOT_CONFORMING, "users_missing")

    def test_a_run_that_is_over_before_late_users_count_is_too_short_to_tell(self) -> None:
        """One request: the user began 3.5 ms late, and the run lasted 4.6 ms."""
        one = f.engine(f.part(f.healthy(), "load", users=1), reason="total_requests", rows=())
        lived = {"clipped_cycle_s": 0.0008, "clipped_connect_s": 0.0002, "clipped_turnaround_s": 0.0001}
        short = f.window(
            one, opened_ms=0.0, duration_s=0.0046, completed=1, users=0, users_integral_s=0.0011,
            service_time=f.of_values([750_000]), service_time_sum_s=0.0008, in_flight_integral_s=0.0008,
            in_flight_age_open_s=0.0, in_flight_age_close_s=0.0, **lived,
        )  # fmt: skip
        assert kind_code(little(short, LIMITS)) == (PROVIDED, "late_begin")
        # Who backed off was alive and did nothing; who was gone before the last second did not begin late.
        assert little(f.window(short, users_integral_s=0.0046), LIMITS).kind is NOT_CONFORMING
        gone = f.engine(short, rows=f.rows([f.RATE] * 3, users=0))
        assert little(gone, LIMITS).kind is NOT_CONFORMING
        # By the clock: the user is still there at its end, or it is not.
        timed = f.engine(short, reason="duration")
        assert kind_code(little(f.window(timed, users=1), LIMITS)) == (PROVIDED, "late_begin")
        assert little(timed, LIMITS).kind is NOT_CONFORMING
        # More than a second is no wait for a CPU, and a window that opens later has everybody in it.
        assert little(f.window(short, duration_s=1.2), LIMITS).kind is NOT_CONFORMING
        assert little(f.window(short, opened_ms=1000.0), LIMITS).kind is NOT_CONFORMING

    def test_the_tail_of_an_exact_total_is_allowed_up_to_the_longest_request(self) -> None:
        # 10 users, one window of 2 s, the longest request 100 ms: up to 5 % of the users' time may be idle
        # at the end
        short = f.window(
            f.engine(f.healthy(), reason="total_requests"),
            duration_s=2.0,
            completed=1600,
            service_time=f.of_values([10_000_000] * 1599 + [100_000_000]),
            clipped_cycle_s=19.4,
            service_time_sum_s=19.3,
            in_flight_integral_s=19.35,
        )
        assert little(short, LIMITS).kind is FINE
        assert little(f.window(short, clipped_cycle_s=18.0), LIMITS).kind is NOT_CONFORMING
        connected = f.of_values([10_000_000] * 1599 + [400_000_000])  # the last one connected for 300 ms
        assert little(f.window(short, clipped_cycle_s=18.0, response_time=connected), LIMITS).kind is FINE


def simulated_window(
    rng: np.random.Generator, users: int, mean_s: float, think_s: float, span_s: float
) -> Window:
    """A closed loop by simulation: exponential service, constant think; counters as an engine takes them."""
    opened, closed = 20 * (mean_s + think_s), 20 * (mean_s + think_s) + span_s
    integral = service_sum = open_age = close_age = 0.0
    values: list[int] = []
    for _ in range(users):
        now = rng.uniform(0, mean_s + think_s)
        while now < closed:
            service = rng.exponential(mean_s)
            integral += max(0.0, min(now + service, closed) - max(now, opened))
            open_age += (opened - now) if now < opened <= now + service else 0.0
            close_age += (closed - now) if now < closed <= now + service else 0.0
            if opened <= now + service < closed:
                service_sum += service
                values.append(int(service * 1e9))
            now += service + think_s
    return Window(
        completed=len(values),
        sent=len(values),
        opened_ms=opened * 1000,
        duration_s=span_s,
        service_time=f.of_values(values),
        service_time_sum_s=service_sum,
        lost_time_sum_s=0.0,
        in_flight_age_open_s=open_age,
        in_flight_age_close_s=close_age,
        in_flight_integral_s=integral,
        clipped_cycle_s=users * span_s,
        users=users,
    )


@pytest.mark.parametrize(
    ("users", "mean_s", "think_s", "span_s"),
    [
        (1, 0.5, 0.0, 10.0),
        (2, 0.15, 0.0, 10.0),
        (10, 0.01, 1.0, 10.0),
        (200, 0.5, 0.0, 5.0),
        (3, 2.0, 0.0, 10.0),
    ],
)
def test_requests_astride_the_border_are_in_the_books(
    users: int, mean_s: float, think_s: float, span_s: float
) -> None:
    """Few, long requests: without the ages far more than 1 % would be missing."""
    rng = np.random.default_rng(7)
    base = f.part(f.healthy(), "load", users=users)
    missing = []
    for _ in range(40):
        window = simulated_window(rng, users, mean_s, think_s, span_s)
        finding = little(f.engine(base, window=window), LIMITS)
        assert finding.kind is FINE
        assert finding.value == pytest.approx(0.0, abs=1e-9)
        missing.append(abs((window.in_flight_integral_s or 0.0) / (window.service_time_sum_s or 1.0) - 1))
    assert max(missing) > LIMITS.of(LittleLimits).little_deviation or users == 200


class TestThink:
    def thinking(self, actual_s: float, overshoot_ms: float = 0.2) -> Evidence:
        base = f.part(f.healthy(), "load", think_kind="exponential", think_mean_ms=100.0)
        return f.window(
            base,
            think_drawn_sum_s=100.0,
            think_actual_sum_s=actual_s,
            think_count=1000,
            think_overshoot=f.of_values([int(overshoot_ms * 1e6)] * 1000),
        )

    def test_left_out_when_nobody_thinks(self) -> None:
        assert think(f.healthy(), LIMITS) is None
        assert think(f.open_model(), LIMITS) is None

    def test_quiet_when_kept(self) -> None:
        assert kind_code(think(self.thinking(100.02), LIMITS)) == (FINE, "ok")

    @pytest.mark.parametrize("late_ms", [0.8, -0.8])
    def test_a_small_deviation_moves_the_rate_by_its_part_of_a_cycle(self, late_ms: float) -> None:
        """10 users who wait 20 ms and think 100: 10 ÷ 120 ms, and 10 ÷ 120.8 ms with late timers."""
        measured = 10 / (0.120 + late_ms / 1000)
        waiting = f.window(self.thinking(100 + late_ms), service_time=f.of_values([20_000_000] * 1000))
        finding = present(think(waiting, LIMITS))
        assert kind_code(finding) == (BUDGET, "deviation")
        assert set(finding.bias) == {"requests_per_s"}
        bias = finding.bias["requests_per_s"]
        moved = bias.high if late_ms > 0 else bias.low
        assert moved == pytest.approx(late_ms / 120)
        assert measured * (1 + late_ms / 120) == pytest.approx(10 / 0.120)
        assert (bias.low if late_ms > 0 else bias.high) == 0

    def test_sessions_that_arrive_by_schedule_keep_their_rate(self) -> None:
        facts = {"model": "open", "sessions_per_s": 10.0}
        arriving = f.part(self.thinking(100.8), "load", **facts)
        assert present(think(arriving, LIMITS)).bias["requests_per_s"].size == 0

    @pytest.mark.parametrize("actual_s", [95.0, 104.0])
    def test_fires_when_stretched_or_cut(self, actual_s: float) -> None:
        finding = present(think(self.thinking(actual_s), LIMITS))
        assert kind_code(finding) == (NOT_CONFORMING, "deviation")
        assert finding.value == pytest.approx(actual_s / 100 - 1)

    def test_late_timers_may_send_bursts(self) -> None:
        finding = present(think(self.thinking(100.3, overshoot_ms=5), LIMITS))
        assert (finding.conforms, finding.code) == (True, "late_timers")
        assert finding.provided
        assert finding.bias["requests_per_s"].up > 0

    @pytest.mark.parametrize(("late", "code"), [(1, "ok"), (10, "late_timers")])
    @pytest.mark.parametrize("count", [10, 100])
    def test_one_late_sleeper_in_a_hundred_is_none(self, count: int, late: int, code: str) -> None:
        drawn = f.of_values([200_000] * (count - late) + [3_300_000] * late)
        sums = dict.fromkeys(("think_drawn_sum_s", "think_actual_sum_s"), count * 0.1)
        base = f.window(self.thinking(100.0), **sums, think_count=count, think_overshoot=drawn)
        assert present(think(base, LIMITS)).code == code

    def test_one_late_think_time_of_a_few_is_no_wrong_load(self) -> None:
        """A smoke test: 19 think times of 10 ms, of which one was 8 ms late on a busy host."""
        late = f.of_values([100_000] * 18 + [8_000_000])
        few = f.window(
            self.thinking(100.0), think_drawn_sum_s=0.19, think_actual_sum_s=0.19 + 0.0098, think_count=19,
            think_overshoot=late,
        )  # fmt: skip
        finding = present(think(few, LIMITS))
        assert (finding.conforms, finding.code) == (True, "few")
        assert finding.provided
        all_late = f.window(few, think_overshoot=f.of_values([515_000] * 19))
        assert present(think(all_late, LIMITS)).kind is NOT_CONFORMING
        many = f.window(few, think_count=190)
        assert present(think(many, LIMITS)).kind is NOT_CONFORMING

    def test_the_floor_spares_short_think_times(self) -> None:
        """1 % of 10 ms would be 0.1 ms: no timer of a general-purpose kernel keeps that at p99."""
        short = f.window(self.thinking(10.05, overshoot_ms=0.6), think_drawn_sum_s=10.0)
        assert present(think(short, LIMITS)).code == "deviation", "of the mean, not of the tail"

    def test_uncounted_is_a_condition(self) -> None:
        base = f.window(self.thinking(100), think_actual_sum_s=None)
        assert kind_code(think(base, LIMITS)) == (PROVIDED, "unread")
        assert kind_code(think(f.window(base, think_count=0), LIMITS)) == (PROVIDED, "unread")
        assert kind_code(think(f.window(base, think_overshoot=None), LIMITS)) == (PROVIDED, "unread")
