"""schedule and arrivals: each fires on its trouble and keeps quiet without it. A bound holds what the
figure is without the trouble.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from prony.evidence.counts import EngineThread
from prony.evidence.trial import Evidence
from prony.judge.checks.arrivals import arrivals
from prony.judge.checks.schedule import schedule
from prony.judge.finding import Kind
from prony.judge.histogram import decode
from prony.judge.limits import CheckLimits
from prony.judge.times import NAMED
from prony_hosts.load.adding import uniform_distance
from tests.judge import factory as f
from tests.judge.factory import kind_and_code as kind_code
from tests.judge.factory import present

LIMITS = CheckLimits()
NOT_CONFORMING, BUDGET, PROVIDED, FINE = Kind


class TestSchedule:
    def test_left_out_in_a_closed_loop(self) -> None:
        assert schedule(f.healthy(), LIMITS) is None

    def test_quiet_when_the_rate_is_kept(self) -> None:
        finding = present(schedule(f.open_model(), LIMITS))
        assert kind_code(finding) == (FINE, "ok")
        assert (finding.value, finding.advice) == (1, "")

    def test_one_slow_row_fires(self) -> None:
        base = f.open_model()
        assert base.engine is not None
        slow = tuple(r.model_copy(update={"sent": 7000}) if r.t_ms == 45_000 else r for r in base.engine.rows)
        finding = present(schedule(f.engine(base, rows=slow), LIMITS))
        assert kind_code(finding) == (NOT_CONFORMING, "backlog")
        assert finding.value == pytest.approx(7000 / 8000)

    def test_a_slow_row_outside_the_window_does_not(self) -> None:
        base = f.open_model()
        assert base.engine is not None
        slow = tuple(r.model_copy(update={"sent": 7000}) if r.t_ms == 5_000 else r for r in base.engine.rows)
        assert present(schedule(f.engine(base, rows=slow), LIMITS)).kind is FINE

    def test_rounding_of_small_rates_is_allowed(self) -> None:
        base = f.open_model(rate=20)
        assert base.engine is not None
        for each, kind in (((19, 21), FINE), ((19, 19), NOT_CONFORMING)):
            late = tuple(
                r.model_copy(update={"sent": each[i % 2]}) for i, r in enumerate(base.engine.rows, start=1)
            )
            assert present(schedule(f.engine(base, rows=late), LIMITS)).kind is kind

    def backlogged(self, sent: dict[int, int], **totals: int) -> Evidence:
        """1000/s; `sent` in the rows that end at these milliseconds."""
        base = f.window(f.open_model(rate=1000), latency=f.histogram(mean_ms=2.0))
        assert base.engine is not None
        rows = tuple(r.model_copy(update={"sent": sent.get(int(r.t_ms), 1000)}) for r in base.engine.rows)
        return f.totals(f.engine(base, rows=rows), **totals)

    def test_what_a_hiccup_across_a_rows_end_made_late_may_be_the_longest(self) -> None:
        """13 ms at 1000/s: 13 requests are sent in the next row, 3 beyond the share that may be missing. Of
        9,000 in full rows: a client on time would have at least percentile p - 0.033 %.
        """
        hiccup = self.backlogged({45_000: 987, 46_000: 1013})
        times = f.of_values([2_000_000] * 79_900 + [3_000_000] * 90 + [40_000_000] * 10)
        hiccup = f.window(hiccup, latency=times, service_time=times)
        finding = present(schedule(hiccup, LIMITS))
        assert kind_code(finding) == (BUDGET, "caught_up")
        # p99.9 is 3 ms and p99.867 is 2 ms; the 10 longest are among what may have been late.
        assert finding.bias["p999_ms"].low == pytest.approx(2 / 3 - 1, rel=0.01)
        assert finding.bias["mean_ms"].low == pytest.approx(-(10 * 38 + 17 * 1) / 80_000 / 2.006, rel=0.1)
        last = self.backlogged({50_000: 987, 51_000: 1013}, due_unsent=0)
        assert present(schedule(f.window(last, latency=times, service_time=times), LIMITS)).kind is BUDGET

    def test_a_backlog_that_remains_does_not_conform(self) -> None:
        finding = schedule(self.backlogged({45_000: 900, 46_000: 1000, 47_000: 1100}), LIMITS)
        assert kind_code(finding) == (NOT_CONFORMING, "backlog")

    def test_a_rate_that_is_slowly_missed_does_not_conform(self) -> None:
        """985 of 1000 in every row: each row is near the limit, and the backlog grows."""
        slow = self.backlogged(dict.fromkeys(range(1000, 53_000, 1000), 985))
        assert kind_code(schedule(slow, LIMITS)) == (NOT_CONFORMING, "backlog")

    @pytest.mark.parametrize(
        ("unsent", "in_all", "kind"), [(5, 0, BUDGET), (5, 3, NOT_CONFORMING), (900, 0, NOT_CONFORMING)]
    )
    def test_what_was_due_at_the_windows_end_and_sent_soon_after_is_missing_in_the_rate(
        self, unsent: int, in_all: int, kind: Kind
    ) -> None:
        """Of 1,000 that were due: 995 were sent in the window of the 1,000."""
        late = f.window(self.backlogged({}, due_unsent=in_all), due_unsent=unsent, offered=1000)
        finding = present(schedule(late, LIMITS))
        assert kind_code(finding) == (kind, "unsent")
        assert finding.bias["requests_per_s"].high == pytest.approx(1000 / (1000 - unsent) - 1)

    @pytest.mark.parametrize("field", ["due_unsent", "blocked"])
    def test_unsent_and_blocked_fire(self, field: str) -> None:
        finding = schedule(f.window(f.open_model(), **{field: 3}), LIMITS)
        assert kind_code(finding) == (NOT_CONFORMING, {"due_unsent": "unsent"}.get(field, field))

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

    def test_a_freeze_that_made_the_p99_does_not_conform_although_it_was_caught_up(self) -> None:
        """900 ms in 10 s: 9 % of the arrivals are late, and p99 is how long the client stood still."""
        assert kind_code(schedule(self.late([900.0], 2.0), LIMITS)) == (NOT_CONFORMING, "late_sends")

    @pytest.mark.parametrize(
        ("freezes_ms", "service_ms", "kind"),
        [
            ([13.0], 2.0, BUDGET),
            ([13.0] * 7, 2.0, BUDGET),
            ([13.0] * 20, 2.0, NOT_CONFORMING),
            ([13.0] * 20, 200.0, BUDGET),
        ],
    )
    def test_hiccups_decide_only_where_they_made_the_p99_and_are_in_every_bound(
        self, freezes_ms: list[float], service_ms: float, kind: Kind
    ) -> None:
        """The service times are what a client on time would have measured."""
        evidence = self.late(freezes_ms, service_ms)
        finding = present(schedule(evidence, LIMITS))
        assert finding.kind is kind
        assert evidence.engine is not None
        window = evidence.engine.window
        assert window is not None
        assert window.latency is not None
        assert window.service_time is not None
        measured, true = decode(window.latency), decode(window.service_time)
        for name, percentile in NAMED.items():
            at, without = measured.percentile_ns(percentile), true.percentile_ns(percentile)
            assert at is not None
            assert without is not None
            assert at * (1 + (finding.of(name).low or 0.0)) <= without * 1.001
        low = finding.bias["mean_ms"].low
        assert low is not None
        assert measured.moment(1) * (1 + low) <= true.moment(1) * 1.001
        assert low >= -0.2, "and no more than what was late can be"

    def test_the_part_of_late_sends_in_a_percentile_is_its_bound(self) -> None:
        """Every request of 2 ms was sent 0.5 ms late: within what is allowed, and a fifth of each latency."""
        late = f.window(
            f.open_model(),
            send_lag=f.of_values([500_000] * 10_000),
            latency=f.of_values([2_500_000] * 10_000),
            service_time=f.of_values([2_000_000] * 10_000),
        )
        finding = present(schedule(late, LIMITS))
        assert finding.kind is BUDGET
        for name in ("mean_ms", "p50_ms", "p99_ms"):
            assert [finding.bias[name].low, finding.bias[name].high] == pytest.approx([-0.2, 0], rel=0.01)
        assert "requests_per_s" not in finding.bias

    def test_late_sends_that_are_not_in_the_p99_or_cannot_be_compared_are_bounded_too(self) -> None:
        frozen = self.late([900.0], 2.0)
        unread = f.window(frozen, service_time=None, response_time=None)
        assert kind_code(schedule(unread, LIMITS)) == (BUDGET, "late_sends")
        assert frozen.engine is not None
        assert frozen.engine.window is not None
        equal = f.window(frozen, service_time=frozen.engine.window.latency)
        bunched = present(schedule(equal, LIMITS))
        assert kind_code(bunched) == (BUDGET, "late_sends")
        # All 9 % that were late may have held each other up: p90 is at least p81 now, p99 at least p90.
        latency = decode(frozen.engine.window.latency or f.histogram())
        p99, p90 = latency.percentile_ns(99), latency.percentile_ns(90.03)
        assert p99 is not None
        assert p90 is not None
        assert bunched.bias["p99_ms"].low == pytest.approx(p90 / p99 - 1, abs=0.01)

    def test_lag_is_judged_against_the_median_latency(self) -> None:
        slow_server = f.window(
            f.open_model(),
            send_lag=f.histogram(mean_ms=2.0),
            latency=f.histogram(mean_ms=150),
            service_time=f.histogram(mean_ms=148),
        )
        finding = present(schedule(slow_server, LIMITS))
        assert (kind_code(finding), finding.advice) == ((BUDGET, "lag"), "")
        assert finding.bias["mean_ms"].low == pytest.approx(-2 / 150, rel=0.01)

    @pytest.mark.parametrize(
        ("count", "late", "code"), [(600, 5, "lag"), (600, 10, "late_sends"), (5000, 10, "late_sends")]
    )
    def test_the_percentile_is_one_that_the_sample_supports(self, count: int, late: int, code: str) -> None:
        lag = f.of_values([10_000] * (count - late) + [20_000_000] * late)
        finding = present(schedule(f.window(f.open_model(), send_lag=lag), LIMITS))
        assert finding.code == code

    def test_what_was_due_within_the_allowed_lag_may_fall_into_the_next_row(self) -> None:
        base = f.window(f.open_model(rate=200), latency=f.histogram(mean_ms=100, sigma=0.01))
        assert base.engine is not None
        for sent, code in ((195, "ok"), (193, "caught_up")):
            late = {45_000: sent, 46_000: 400 - sent}
            rows = tuple(r.model_copy(update={"sent": late.get(int(r.t_ms), 200)}) for r in base.engine.rows)
            assert present(schedule(f.engine(base, rows=rows), LIMITS)).code == code

    @pytest.mark.parametrize("field", ["due_unsent", "blocked", "send_lag"])
    def test_uncounted_is_a_condition(self, field: str) -> None:
        finding = present(schedule(f.window(f.open_model(), **{field: None}), LIMITS))
        assert kind_code(finding) == (PROVIDED, "unread")
        assert finding.provided

    def test_constant_arrivals_need_no_counter_of_what_was_due(self) -> None:
        base = f.open_model()
        assert base.engine is not None
        bare = tuple(r.model_copy(update={"offered": None}) for r in base.engine.rows)
        assert present(schedule(f.engine(base, rows=bare), LIMITS)).kind is FINE
        poisson = f.part(f.engine(base, rows=bare), "load", arrivals="poisson")
        assert kind_code(schedule(poisson, LIMITS)) == (PROVIDED, "unread")


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
        assert present(arrivals(self.with_gaps(gaps), LIMITS)).kind is FINE

    def test_even_spacing_does_not_conform(self) -> None:
        assert kind_code(arrivals(self.with_gaps(np.ones(200)), LIMITS)) == (NOT_CONFORMING, "not_poisson")

    def test_slightly_wrong_gaps_are_a_condition(self) -> None:
        gaps = np.random.default_rng(11).gamma(1.12, 1 / 1.12, size=2500)
        finding = present(arrivals(self.with_gaps(gaps), LIMITS))
        assert kind_code(finding) == (PROVIDED, "not_poisson")
        assert (finding.bias, bool(finding.provided)) == ({}, True)

    @pytest.mark.parametrize("busy", [0.015, 0.05, 0.2, 0.35])
    def test_a_client_that_sends_one_after_the_other_is_not_accused(self, busy: float) -> None:
        """However slow it is: a request waits until the thread is done with the one before."""
        due = np.cumsum(np.random.default_rng(13).exponential(size=50_000))
        after_each = np.arange(len(due)) * busy
        sent = np.maximum.accumulate(due - after_each) + after_each
        found = present(arrivals(self.with_gaps(np.diff(sent), 1000.0, busy), LIMITS))
        assert found.kind is FINE
        # Of a thread that had nothing else to do, the same sends are not excused.
        assert present(arrivals(self.with_gaps(np.diff(sent), 1000.0), LIMITS)).kind is NOT_CONFORMING

    @pytest.mark.parametrize(
        ("busy", "shape"), [(0.0, 1.1), (0.015, 1.1), (0.05, 1.2), (0.2, 1.5), (0.35, 2)]
    )
    def test_a_busy_client_excuses_nothing_else(self, busy: float, shape: float) -> None:
        even = np.ones(30_000)
        bent = np.random.default_rng(14).gamma(shape, 1 / shape, size=30_000)
        for gaps in (even, bent):
            assert present(arrivals(self.with_gaps(gaps, 1000.0, busy), LIMITS)).kind is NOT_CONFORMING

    def test_a_client_that_works_all_the_time_cannot_be_tested(self) -> None:
        gaps = np.random.default_rng(15).exponential(size=5000)
        found = present(arrivals(self.with_gaps(gaps, busy=0.9), LIMITS))
        assert kind_code(found) == (PROVIDED, "unread")

    def test_what_was_stored_without_these_distances_is_judged_too(self) -> None:
        """A distance of 0.015 at 1,000 requests/s of 15 µs each: all of it is the sends'."""
        gaps = np.maximum(np.random.default_rng(16).exponential(size=30_000), 0.015)
        for busy, kind in ((0.015, FINE), (0.0, PROVIDED)):
            stored = f.window(self.with_gaps(gaps, 1000.0, busy), arrival_gaps_ks_from=())
            assert present(arrivals(stored, LIMITS)).kind is kind

    def test_false_alarms_come_at_the_stated_rate(self) -> None:
        rng = np.random.default_rng(12)
        found = [
            present(arrivals(self.with_gaps(rng.exponential(size=400)), LIMITS)).kind for _ in range(400)
        ]
        assert found.count(NOT_CONFORMING) == 0
        assert found.count(PROVIDED) <= 12  # 4 expected at alpha = 0.01

    def test_untested_is_a_condition(self) -> None:
        untested = f.window(f.open_model("poisson"), arrival_gaps_ks=None)
        assert kind_code(arrivals(untested, LIMITS)) == (PROVIDED, "unread")
