"""errors, little, think, schedule, arrivals: each fires on its trouble and keeps quiet without it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import kstest

from prony.evidence.engine import EngineThread, ScriptReport, Window
from prony.evidence.trial import Evidence
from prony.judge.checks.arrivals import arrivals
from prony.judge.checks.errors import ErrorsLimits, errors
from prony.judge.checks.little import LittleLimits, little
from prony.judge.checks.schedule import schedule
from prony.judge.checks.think import think
from prony.judge.finding import Finding, Status
from prony.judge.limits import CheckLimits
from prony.load.adding import uniform_distance
from tests.judge import factory as f

LIMITS = CheckLimits()


def present(finding: Finding | None) -> Finding:
    assert finding is not None
    return finding


class TestErrors:
    def test_quiet_without_failures(self) -> None:
        finding = errors(f.healthy(), LIMITS)
        assert finding.status is Status.VALID
        assert finding.value == 0

    @pytest.mark.parametrize(
        ("failed", "status"), [(1, Status.SUSPECT), (800, Status.SUSPECT), (900, Status.INVALID)]
    )
    def test_fires_by_share(self, failed: int, status: Status) -> None:
        broken = f.window(f.healthy(), failed=failed, completed=80_000 - failed, errors={"timeout": failed})
        finding = errors(broken, LIMITS)
        assert finding.status is status
        assert finding.value == pytest.approx(failed / 80_000)
        assert "timeout" in finding.reason

    def test_the_engines_reason_is_told_for_kinds_that_occurred(self) -> None:
        reasons = {"tls": "invalid peer certificate: expired", "protocol": "not told"}
        broken = f.window(f.healthy(), failed=4000, errors={"tls": 4000}, error_reasons=reasons)
        finding = errors(broken, LIMITS)
        assert "tls: invalid peer certificate: expired" in finding.reason
        assert "not told" not in finding.reason
        assert "--ca" in finding.advice

    def test_a_missed_expectation_is_one_request_not_two(self) -> None:
        broken = f.window(f.healthy(), failed=400, errors={"expect_body": 400})
        assert errors(broken, LIMITS).value == pytest.approx(400 / 80_000)

    def test_fast_503s_count_though_nobody_declared_anything(self) -> None:
        broken = f.window(f.healthy(), status={"200": 78_400, "503": 1600})
        finding = errors(broken, LIMITS)
        assert finding.status is Status.INVALID
        assert "status_503" in finding.reason

    def test_a_declared_404_is_a_response(self) -> None:
        declared = f.part(f.window(f.healthy(), status={"404": 80_000}), "load", content_declared=True)
        assert errors(declared, LIMITS).status is Status.VALID

    def test_silence_is_invalid(self) -> None:
        assert errors(f.window(f.healthy(), completed=0, status={}), LIMITS).status is Status.INVALID

    @pytest.mark.parametrize("kind", ["client", "answer_memory"])
    def test_failures_of_the_client_are_called_its_own(self, kind: str) -> None:
        finding = errors(f.window(f.healthy(), errors={kind: 5, "read": 2}, failed=7), LIMITS)
        assert finding.status is Status.SUSPECT
        assert "5 of them are the load generator's own" in finding.reason
        assert "server" in finding.advice
        assert "closed connections" not in finding.advice

    def test_dropped_cookies_are_said_though_no_request_failed(self) -> None:
        finding = errors(f.window(f.healthy(), cookies_dropped=12), LIMITS)
        assert finding.status is Status.VALID
        assert "12 cookies were not kept" in finding.reason

    def test_errors_outside_the_window_are_mentioned_and_do_not_decide(self) -> None:
        finding = errors(f.totals(f.healthy(), failed=7), LIMITS)
        assert finding.status is Status.VALID
        assert "7 outside the window" in finding.reason

    def test_limits_can_be_set(self) -> None:
        broken = f.window(f.healthy(), failed=100, errors={"read": 100})
        assert errors(broken, ErrorsLimits(errors_suspect_share=0.01)).status is Status.VALID


WITHOUT_AGES: dict[str, None] = {
    "lost_time_sum_s": None,
    "in_flight_age_open_s": None,
    "in_flight_age_close_s": None,
}
"""What engines did not report before they counted the ages of requests at the window's edges."""


class TestLittle:
    def test_quiet_when_all_users_are_there(self) -> None:
        finding = little(f.healthy(), LIMITS)
        assert finding.status is Status.VALID
        assert "9.995 of 10 users" in finding.reason

    @pytest.mark.parametrize("simulated", [13_092, 17_000])
    def test_fires_when_users_are_missing_or_too_many(self, simulated: int) -> None:
        crowd = f.part(f.healthy(), "load", users=16_000)
        broken = f.window(crowd, clipped_cycle_s=simulated * f.WINDOW_S, clipped_turnaround_s=0.0)
        finding = little(broken, LIMITS)
        assert finding.status is Status.INVALID
        assert finding.value == pytest.approx(simulated / 16_000 - 1)
        assert f"{simulated:,} of 16,000 users" in finding.reason

    def test_the_clients_own_time_and_connecting_are_user_time(self) -> None:
        # 57.3 of 64 users in flight (a fast server), and the connections of one user with 19 requests.
        fast = f.part(f.healthy(), "load", users=64)
        cycles = {"clipped_cycle_s": 573.0, "clipped_turnaround_s": 66.8, "completed": 1_000_000}
        assert little(f.window(fast, **cycles), LIMITS).status is Status.VALID
        without = {**cycles, "clipped_turnaround_s": 0.0}
        assert little(f.window(fast, **without), LIMITS).status is Status.INVALID
        one = f.part(f.healthy(), "load", users=1)
        parts = {"clipped_cycle_s": 2.3, "clipped_connect_s": 7.5, "clipped_turnaround_s": 0.18}
        assert little(f.window(one, **parts, completed=19), LIMITS).status is Status.VALID

    def test_users_who_are_gone_are_not_explained_by_the_clients_own_time(self) -> None:
        gone = f.window(f.healthy(), clipped_cycle_s=88.0, clipped_turnaround_s=1.9, clipped_back_off_s=10.0)
        finding = little(gone, LIMITS)
        assert finding.status is Status.INVALID
        assert "8.99 of 10 users simulated, 1 backed off" in finding.reason
        assert "backed off after failed attempts" in finding.advice

    def test_an_engine_that_did_not_count_turnaround_leaves_a_deficit_open(self) -> None:
        old = f.window(f.healthy(), clipped_cycle_s=90.0, clipped_turnaround_s=None, clipped_connect_s=None)
        finding = little(old, LIMITS)
        assert finding.status is Status.UNKNOWN
        assert "turn-around" in finding.reason
        more = f.window(old, clipped_cycle_s=103.0)
        assert little(more, LIMITS).status is Status.INVALID

    def test_fires_when_the_integral_contradicts_the_service_times(self) -> None:
        broken = f.window(f.healthy(), in_flight_integral_s=f.USERS * f.WINDOW_S * 1.2)
        assert little(broken, LIMITS).status is Status.INVALID
        broken = f.window(f.healthy(), in_flight_integral_s=f.USERS * f.WINDOW_S * 0.8)
        assert little(broken, LIMITS).status is Status.INVALID

    def test_time_spent_in_failed_requests_is_counted(self) -> None:
        failing = {"in_flight_integral_s": 120.0, "failed": 4, "errors": {"timeout": 4}}
        assert little(f.window(f.healthy(), **failing), LIMITS).status is Status.INVALID
        counted = f.window(f.healthy(), **failing, lost_time_sum_s=19.96)
        assert little(counted, LIMITS).status is Status.VALID

    def test_time_spent_in_failed_requests_is_suspect_where_it_was_not_counted(self) -> None:
        broken = f.window(f.healthy(), **WITHOUT_AGES, in_flight_integral_s=120.0, failed=4)
        finding = little(broken, LIMITS)
        assert finding.status is Status.SUSPECT
        assert "5 s in each failed request" in finding.reason

    def test_a_freeze_over_the_end_of_the_window_is_in_the_ages(self) -> None:
        # 10 users and a freeze of 240 ms that begins 120 ms before the end of a window of 10 s.
        freeze = {"service_time_sum_s": 98.8, "in_flight_integral_s": 100.0}
        ages = {"in_flight_age_open_s": 0.006, "in_flight_age_close_s": 1.206}
        finding = little(f.window(f.healthy(), **freeze, **ages), LIMITS)
        assert finding.status is Status.VALID
        assert "bookkeeping: mean in flight 10, 10 by the requests' times" in finding.reason
        assert "edge" not in finding.limit
        lost_count = {**ages, "in_flight_age_close_s": 0.006}
        assert little(f.window(f.healthy(), **freeze, **lost_count), LIMITS).status is Status.INVALID

    def test_one_request_that_lasts_longer_than_the_window_is_in_the_ages_alone(self) -> None:
        ages = {"in_flight_age_open_s": 30.0, "in_flight_age_close_s": 130.0}
        long = f.window(f.healthy(), service_time_sum_s=0.0, in_flight_integral_s=100.0, **ages)
        assert little(long, LIMITS).status is Status.VALID

    def test_the_second_form_alone_cannot_be_a_pass_in_a_closed_loop(self) -> None:
        assert little(f.window(f.healthy(), clipped_cycle_s=None), LIMITS).status is Status.UNKNOWN

    def test_only_the_second_form_in_an_open_model(self) -> None:
        finding = little(f.window(f.open_model(), clipped_cycle_s=None), LIMITS)
        assert finding.status is Status.VALID
        assert "users" not in finding.reason

    def test_users_who_leave_after_their_iterations_are_not_missed(self) -> None:
        leaving = f.rows([f.RATE] * 52)
        leaving = tuple(r.model_copy(update={"users": 10 if r.t_ms <= 45_000 else 4}) for r in leaving)
        ended = f.engine(f.healthy(), rows=leaving, reason="iterations")
        assert ended.engine is not None
        # 4.7 s with 10 users, one row on the way down, the rest with 4
        user_s = 4.7 * 10 + 1 * 7 + 4.3 * 4
        ended = f.window(ended, clipped_cycle_s=user_s, users=4)
        assert little(ended, LIMITS).status is Status.VALID
        stopped = f.engine(ended, reason="stopped")
        assert little(stopped, LIMITS).status is Status.INVALID
        # A script may send them home (thread:stop()), though not by its faults.
        assert little(f.engine(stopped, script=ScriptReport()), LIMITS).status is Status.VALID
        assert (
            little(f.engine(stopped, script=ScriptReport(error="x.lua:1")), LIMITS).status is Status.INVALID
        )

    def test_a_run_that_is_over_before_late_users_count_is_too_short_to_tell(self) -> None:
        """One request: the user began 3.5 ms late, and the run lasted 4.6 ms."""
        one = f.engine(f.part(f.healthy(), "load", users=1), reason="total_requests", rows=())
        lived = {"clipped_cycle_s": 0.0008, "clipped_connect_s": 0.0002, "clipped_turnaround_s": 0.0001}
        short = f.window(
            one, opened_ms=0.0, duration_s=0.0046, completed=1, users=0, users_integral_s=0.0011,
            service_time=f.of_values([750_000]), service_time_sum_s=0.0008, in_flight_integral_s=0.0008,
            in_flight_age_open_s=0.0, in_flight_age_close_s=0.0, **lived,
        )  # fmt: skip
        finding = little(short, LIMITS)
        assert finding.status is Status.UNKNOWN
        assert "users began 3.5 ms late, in a run of 4.6 ms: too short to tell" in finding.reason
        assert "measure longer" in finding.advice
        # Who backed off was alive and did nothing; who was gone before the last second did not begin late.
        assert little(f.window(short, users_integral_s=0.0046), LIMITS).status is Status.INVALID
        gone = f.engine(short, rows=f.rows([f.RATE] * 3, users=0))
        assert little(gone, LIMITS).status is Status.INVALID
        # By the clock: the user is still there at its end, or it is not.
        timed = f.engine(short, reason="duration")
        assert little(f.window(timed, users=1), LIMITS).status is Status.UNKNOWN
        assert little(timed, LIMITS).status is Status.INVALID
        # More than a second is no wait for a CPU, and a window that opens later has everybody in it.
        assert little(f.window(short, duration_s=1.2), LIMITS).status is Status.INVALID
        assert little(f.window(short, opened_ms=1000.0), LIMITS).status is Status.INVALID

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
        assert little(short, LIMITS).status is Status.VALID
        assert little(f.window(short, clipped_cycle_s=18.0), LIMITS).status is Status.INVALID
        connected = f.of_values([10_000_000] * 1599 + [400_000_000])  # the last one connected for 300 ms
        assert (
            little(f.window(short, clipped_cycle_s=18.0, response_time=connected), LIMITS).status
            is Status.VALID
        )


def simulated_window(
    rng: np.random.Generator, users: int, mean_s: float, think_s: float, span_s: float
) -> Window:
    """A closed loop by simulation: exponential service, constant think; counters as an engine takes them."""
    opened, closed = 20 * (mean_s + think_s), 20 * (mean_s + think_s) + span_s
    integral = service_sum = 0.0
    values: list[int] = []
    for _ in range(users):
        now = rng.uniform(0, mean_s + think_s)
        while now < closed:
            service = rng.exponential(mean_s)
            integral += max(0.0, min(now + service, closed) - max(now, opened))
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
def test_little_allows_requests_astride_the_border(
    users: int, mean_s: float, think_s: float, span_s: float
) -> None:
    """Few, long requests: the raw deviation is often far above 1 %, and yet every counter is right."""
    rng = np.random.default_rng(7)
    base = f.part(f.healthy(), "load", users=users)
    statuses, deviations = [], []
    for _ in range(40):
        evidence = f.engine(base, window=simulated_window(rng, users, mean_s, think_s, span_s))
        finding = little(evidence, LIMITS)
        statuses.append(finding.status)
        deviations.append(abs(float(finding.value or 0)))
    assert Status.INVALID not in statuses
    assert statuses.count(Status.VALID) >= 39
    assert max(deviations) > LIMITS.of(LittleLimits).little_deviation or users == 200


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
        assert present(think(self.thinking(100.3), LIMITS)).status is Status.VALID

    @pytest.mark.parametrize("actual_s", [95.0, 104.0])
    def test_fires_when_stretched_or_cut(self, actual_s: float) -> None:
        finding = present(think(self.thinking(actual_s), LIMITS))
        assert finding.status is Status.INVALID
        assert finding.value == pytest.approx(actual_s / 100 - 1)

    def test_a_late_tail_is_suspect(self) -> None:
        assert present(think(self.thinking(100.3, overshoot_ms=5), LIMITS)).status is Status.SUSPECT

    @pytest.mark.parametrize(("late", "status"), [(1, Status.VALID), (10, Status.SUSPECT)])
    @pytest.mark.parametrize("count", [10, 100])
    def test_one_late_sleeper_in_a_hundred_is_none(self, count: int, late: int, status: Status) -> None:
        drawn = f.of_values([200_000] * (count - late) + [3_300_000] * late)
        sums = dict.fromkeys(("think_drawn_sum_s", "think_actual_sum_s"), count * 0.1)
        base = f.window(self.thinking(100.0), **sums, think_count=count, think_overshoot=drawn)
        assert present(think(base, LIMITS)).status is status

    def test_one_late_think_time_of_a_few_is_no_wrong_load(self) -> None:
        """A smoke test: 19 think times of 10 ms, of which one was 8 ms late on a busy host."""
        late = f.of_values([100_000] * 18 + [8_000_000])
        few = f.window(
            self.thinking(100.0), think_drawn_sum_s=0.19, think_actual_sum_s=0.19 + 0.0098, think_count=19,
            think_overshoot=late,
        )  # fmt: skip
        finding = present(think(few, LIMITS))
        assert finding.status is Status.UNKNOWN
        assert "of 19 think times the latest decides" in finding.reason
        all_late = f.window(few, think_overshoot=f.of_values([515_000] * 19))
        assert present(think(all_late, LIMITS)).status is Status.INVALID
        many = f.window(few, think_count=190)
        assert present(think(many, LIMITS)).status is Status.INVALID

    def test_the_floor_spares_short_think_times(self) -> None:
        """1 % of 10 ms would be 0.1 ms: no timer of a general-purpose kernel keeps that at p99."""
        short = f.window(self.thinking(10.05, overshoot_ms=0.6), think_drawn_sum_s=10.0)
        assert present(think(short, LIMITS)).status is Status.VALID

    def test_uncounted_is_unknown(self) -> None:
        base = f.window(self.thinking(100), think_actual_sum_s=None)
        assert present(think(base, LIMITS)).status is Status.UNKNOWN
        assert present(think(f.window(base, think_count=0), LIMITS)).status is Status.UNKNOWN


class TestSchedule:
    def test_left_out_in_a_closed_loop(self) -> None:
        assert schedule(f.healthy(), LIMITS) is None

    def test_quiet_when_the_rate_is_kept(self) -> None:
        assert present(schedule(f.open_model(), LIMITS)).status is Status.VALID

    def test_one_slow_row_fires(self) -> None:
        base = f.open_model()
        assert base.engine is not None
        slow = tuple(r.model_copy(update={"sent": 7000}) if r.t_ms == 45_000 else r for r in base.engine.rows)
        finding = present(schedule(f.engine(base, rows=slow), LIMITS))
        assert finding.status is Status.INVALID
        assert finding.value == pytest.approx(7000 / 8000)

    def test_a_slow_row_outside_the_window_does_not(self) -> None:
        base = f.open_model()
        assert base.engine is not None
        slow = tuple(r.model_copy(update={"sent": 7000}) if r.t_ms == 5_000 else r for r in base.engine.rows)
        assert present(schedule(f.engine(base, rows=slow), LIMITS)).status is Status.VALID

    def test_rounding_of_small_rates_is_allowed(self) -> None:
        base = f.open_model(rate=20)
        assert base.engine is not None
        for each, status in (((19, 21), Status.VALID), ((19, 19), Status.INVALID)):
            late = tuple(
                r.model_copy(update={"sent": each[i % 2]}) for i, r in enumerate(base.engine.rows, start=1)
            )
            assert present(schedule(f.engine(base, rows=late), LIMITS)).status is status

    def backlogged(self, sent: dict[int, int], **totals: int) -> Evidence:
        """1000/s; `sent` in the rows that end at these milliseconds."""
        base = f.window(f.open_model(rate=1000), latency=f.histogram(mean_ms=2.0))
        assert base.engine is not None
        rows = tuple(r.model_copy(update={"sent": sent.get(int(r.t_ms), 1000)}) for r in base.engine.rows)
        return f.totals(f.engine(base, rows=rows), **totals)

    def test_a_hiccup_across_a_rows_end_that_is_caught_up_is_suspect_at_most(self) -> None:
        """13 ms at 1000/s: 13 requests are sent in the next row instead."""
        finding = present(schedule(self.backlogged({45_000: 987, 46_000: 1013}), LIMITS))
        assert finding.status is Status.SUSPECT
        assert "1 row behind schedule and caught up in the next, the worst with" in finding.reason
        last = self.backlogged({50_000: 987, 51_000: 1013}, due_unsent=0)
        assert present(schedule(last, LIMITS)).status is Status.SUSPECT

    def test_a_backlog_that_remains_is_invalid(self) -> None:
        finding = present(schedule(self.backlogged({45_000: 900, 46_000: 1000, 47_000: 1100}), LIMITS))
        assert finding.status is Status.INVALID
        assert "1 row behind schedule, " in finding.reason

    def test_a_rate_that_is_slowly_missed_is_invalid(self) -> None:
        """985 of 1000 in every row: each row is near the limit, and the backlog grows."""
        slow = self.backlogged(dict.fromkeys(range(1000, 53_000, 1000), 985))
        assert present(schedule(slow, LIMITS)).status is Status.INVALID

    @pytest.mark.parametrize(
        ("unsent", "in_all", "status"),
        [(5, 0, Status.SUSPECT), (5, 3, Status.INVALID), (900, 0, Status.INVALID)],
    )
    def test_what_was_due_at_the_windows_end_and_sent_soon_after_is_suspect(
        self, unsent: int, in_all: int, status: Status
    ) -> None:
        late = f.window(self.backlogged({}, due_unsent=in_all), due_unsent=unsent)
        assert present(schedule(late, LIMITS)).status is status

    @pytest.mark.parametrize("field", ["due_unsent", "blocked"])
    def test_unsent_and_blocked_fire(self, field: str) -> None:
        finding = present(schedule(f.window(f.open_model(), **{field: 3}), LIMITS))
        assert finding.status is Status.INVALID
        assert "3 requests" in finding.reason

    def late(self, freezes_ms: list[float], service_ms: float) -> Evidence:
        """10 s at 1000/s; who is due in a freeze of the client is sent at its end."""
        lags = [freeze - at for freeze in freezes_ms for at in range(int(freeze))]
        lags += [0.02] * (10_000 - len(lags))
        rng = np.random.default_rng(4)
        service = service_ms * np.exp(0.3 * rng.standard_normal(10_000))
        return f.window(
            f.open_model(rate=1000),
            send_lag=f.of_values([int(lag * 1e6) for lag in lags]),
            service_time=f.of_values([int(ms * 1e6) for ms in service]),
            latency=f.of_values([int((lag + ms) * 1e6) for lag, ms in zip(lags, service, strict=True)]),
        )

    def test_a_freeze_that_made_the_p99_is_invalid_although_it_was_caught_up(self) -> None:
        """900 ms in 10 s: 9 % of the arrivals are late, and p99 is how long the client stood still."""
        finding = present(schedule(self.late([900.0], 2.0), LIMITS))
        assert finding.status is Status.INVALID
        assert finding.reason.startswith("late sends are 99.5 % of the p99 latency: 80"), "what decided"

    @pytest.mark.parametrize(
        ("freezes_ms", "service_ms", "status"),
        [
            ([13.0], 2.0, Status.SUSPECT),
            ([13.0] * 7, 2.0, Status.SUSPECT),
            ([13.0] * 20, 2.0, Status.INVALID),
            ([13.0] * 20, 200.0, Status.VALID),
        ],
    )
    def test_hiccups_are_invalid_only_where_they_made_the_p99(
        self, freezes_ms: list[float], service_ms: float, status: Status
    ) -> None:
        assert present(schedule(self.late(freezes_ms, service_ms), LIMITS)).status is status

    def test_late_sends_that_are_not_in_the_p99_or_cannot_be_compared_are_suspect(self) -> None:
        frozen = self.late([900.0], 2.0)
        unread = f.window(frozen, service_time=None, response_time=None)
        assert present(schedule(unread, LIMITS)).status is Status.SUSPECT
        assert frozen.engine is not None
        assert frozen.engine.window is not None
        equal = f.window(frozen, service_time=frozen.engine.window.latency)
        assert present(schedule(equal, LIMITS)).status is Status.SUSPECT

    def test_late_sends_are_suspect(self) -> None:
        late = f.window(f.open_model(), send_lag=f.histogram(mean_ms=2.0))
        finding = present(schedule(late, LIMITS))
        assert finding.status is Status.SUSPECT
        assert re.match(r"p99(\.9)? send lag", finding.reason), "a line of progress has room for no more"

    def test_lag_is_judged_against_the_median_latency(self) -> None:
        slow_server = f.window(
            f.open_model(), send_lag=f.histogram(mean_ms=2.0), latency=f.histogram(mean_ms=150)
        )
        assert present(schedule(slow_server, LIMITS)).status is Status.VALID

    @pytest.mark.parametrize(("late", "status"), [(5, Status.VALID), (10, Status.SUSPECT)])
    def test_the_percentile_is_one_that_the_sample_supports(self, late: int, status: Status) -> None:
        lag = f.of_values([10_000] * (600 - late) + [20_000_000] * late)
        finding = present(schedule(f.window(f.open_model(), send_lag=lag), LIMITS))
        assert finding.status is status
        assert "p99 send lag" in finding.reason

    def test_with_enough_samples_it_is_p999(self) -> None:
        lag = f.of_values([10_000] * 4990 + [20_000_000] * 10)
        finding = present(schedule(f.window(f.open_model(), send_lag=lag), LIMITS))
        assert finding.status is Status.SUSPECT
        assert "p99.9 send lag" in finding.reason

    def test_what_was_due_within_the_allowed_lag_may_fall_into_the_next_row(self) -> None:
        base = f.window(f.open_model(rate=200), latency=f.histogram(mean_ms=100, sigma=0.01))
        assert base.engine is not None
        for sent, status in ((195, Status.VALID), (193, Status.SUSPECT)):
            late = {45_000: sent, 46_000: 400 - sent}
            rows = tuple(r.model_copy(update={"sent": late.get(int(r.t_ms), 200)}) for r in base.engine.rows)
            assert present(schedule(f.engine(base, rows=rows), LIMITS)).status is status

    @pytest.mark.parametrize("field", ["due_unsent", "blocked", "send_lag"])
    def test_uncounted_is_unknown(self, field: str) -> None:
        finding = present(schedule(f.window(f.open_model(), **{field: None}), LIMITS))
        assert finding.status is Status.UNKNOWN

    def test_constant_arrivals_need_no_counter_of_what_was_due(self) -> None:
        base = f.open_model()
        assert base.engine is not None
        bare = tuple(r.model_copy(update={"offered": None}) for r in base.engine.rows)
        assert present(schedule(f.engine(base, rows=bare), LIMITS)).status is Status.VALID
        poisson = f.part(f.engine(base, rows=bare), "load", arrivals="poisson")
        assert present(schedule(poisson, LIMITS)).status is Status.UNKNOWN


class TestArrivals:
    def with_gaps(self, gaps: np.ndarray, per_s: float = 10.0, busy: float = 0.0) -> Evidence:
        """Gaps in units of their mean, and the share of the time in which the sending thread is at work."""
        cells = np.histogram(-np.expm1(-gaps), bins=16_384, range=(0, 1))[0]
        _, _, distances = uniform_distance(
            [list(cells)], (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
        )
        evidence = f.window(
            f.open_model("poisson"),
            arrival_gaps=len(gaps),
            arrival_gaps_ks=float(kstest(gaps, "expon").statistic),
            arrival_gaps_ks_from=distances,
            threads=(EngineThread(cpu_s=busy * f.WINDOW_S, wall_s=f.WINDOW_S),),
        )
        asked = evidence.load.model_copy(update={"offered_per_s": per_s})
        return evidence.model_copy(update={"load": asked})

    def test_left_out_unless_poisson(self) -> None:
        assert arrivals(f.open_model("constant"), LIMITS) is None
        assert arrivals(f.healthy(), LIMITS) is None

    def test_exponential_gaps_pass(self) -> None:
        gaps = np.random.default_rng(11).exponential(size=5000)
        assert present(arrivals(self.with_gaps(gaps), LIMITS)).status is Status.VALID

    def test_even_spacing_is_invalid(self) -> None:
        assert present(arrivals(self.with_gaps(np.ones(200)), LIMITS)).status is Status.INVALID

    def test_slightly_wrong_gaps_are_suspect(self) -> None:
        gaps = np.random.default_rng(11).gamma(1.12, 1 / 1.12, size=2500)
        assert present(arrivals(self.with_gaps(gaps), LIMITS)).status is Status.SUSPECT

    @pytest.mark.parametrize("busy", [0.015, 0.05, 0.2, 0.35])
    def test_a_client_that_sends_one_after_the_other_is_not_accused(self, busy: float) -> None:
        """However slow it is: a request waits until the thread is done with the one before."""
        due = np.cumsum(np.random.default_rng(13).exponential(size=50_000))
        after_each = np.arange(len(due)) * busy
        sent = np.maximum.accumulate(due - after_each) + after_each
        found = present(arrivals(self.with_gaps(np.diff(sent), 1000.0, busy), LIMITS))
        assert found.status is Status.VALID
        # Of a thread that had nothing else to do, the same sends are not excused.
        assert present(arrivals(self.with_gaps(np.diff(sent), 1000.0), LIMITS)).status is Status.INVALID

    @pytest.mark.parametrize(
        ("busy", "shape"), [(0.0, 1.1), (0.015, 1.1), (0.05, 1.2), (0.2, 1.5), (0.35, 2)]
    )
    def test_a_busy_client_excuses_nothing_else(self, busy: float, shape: float) -> None:
        even = np.ones(30_000)
        bent = np.random.default_rng(14).gamma(shape, 1 / shape, size=30_000)
        for gaps in (even, bent):
            assert present(arrivals(self.with_gaps(gaps, 1000.0, busy), LIMITS)).status is Status.INVALID

    def test_a_client_that_works_all_the_time_cannot_be_tested(self) -> None:
        gaps = np.random.default_rng(15).exponential(size=5000)
        found = present(arrivals(self.with_gaps(gaps, busy=0.9), LIMITS))
        assert found.status is Status.UNKNOWN
        assert "at work for 90 % of the time" in found.reason

    def test_what_was_stored_without_these_distances_is_judged_too(self) -> None:
        """A distance of 0.015 at 1,000 requests/s of 15 µs each: all of it is the sends'."""
        gaps = np.maximum(np.random.default_rng(16).exponential(size=30_000), 0.015)
        for busy, status in ((0.015, Status.VALID), (0.0, Status.SUSPECT)):
            stored = f.window(self.with_gaps(gaps, 1000.0, busy), arrival_gaps_ks_from=())
            assert present(arrivals(stored, LIMITS)).status is status

    def test_false_alarms_come_at_the_stated_rate(self) -> None:
        rng = np.random.default_rng(12)
        found = [
            present(arrivals(self.with_gaps(rng.exponential(size=400)), LIMITS)).status for _ in range(400)
        ]
        assert found.count(Status.INVALID) == 0
        assert found.count(Status.SUSPECT) <= 12  # 4 expected at alpha = 0.01

    def test_untested_is_unknown(self) -> None:
        untested = f.window(f.open_model("poisson"), arrival_gaps_ks=None)
        assert present(arrivals(untested, LIMITS)).status is Status.UNKNOWN
