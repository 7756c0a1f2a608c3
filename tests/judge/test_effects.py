"""Bounds on figures, against small worlds of which the truth is known: the same without the disturbance.

A world is a server with one CPU, first come, first served, which the disturbance takes away now and then, and
users who ask it (M/M/1, or a closed loop). What a bound leaves out is counted as a miss.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from prony.evidence.counts import Gap
from prony.evidence.server import ThreadUse
from prony.evidence.trial import Evidence
from prony.judge.effects import (
    Biases,
    cpu_lost,
    cpu_spent,
    delayed,
    longest,
    narrower,
    sooner,
    user_time_lost,
    wider,
    wrong_requests,
)
from prony.judge.finding import NO_BIAS, PERCENTILES, Bias
from prony.judge.times import NAMED
from tests.judge import factory as f

Floats = NDArray[np.float64]
REQUESTS = 20_000
SLACK = 0.003
"""The last requests of a world, and one place in 20 above p99.9."""


@dataclass(frozen=True)
class Gone:
    """When the CPU was gone: starts and lengths (s), in order."""

    starts: Floats
    lengths: Floats

    @classmethod
    def bursts(cls, share: float, each_s: float, until_s: float) -> Gone:
        gaps = np.random.default_rng(5).exponential(each_s * (1 - share) / share, int(until_s / each_s) + 9)
        starts = np.cumsum(gaps + each_s) - each_s
        kept = starts[starts < until_s]
        return cls(kept, np.full(kept.size, each_s))

    def done(self, begin_s: float, work_s: float) -> float:
        """When so much work that begins then is done."""
        at = int(np.searchsorted(self.starts + self.lengths, begin_s, side="right"))
        now = begin_s
        while at < self.starts.size and self.starts[at] < now + work_s:
            work_s -= max(0.0, self.starts[at] - now)
            now = self.starts[at] + self.lengths[at]
            at += 1
        return float(now + work_s)


NEVER = Gone(np.empty(0), np.empty(0))


@dataclass(frozen=True)
class World:
    """Who asks, how much CPU a request takes, and what comes between."""

    users: int | None = None
    """None: an open loop of `rate` ..."""
    rate: float = 0.0
    service_s: float = 0.001
    spread: float | None = None
    """None: exponential; else log-normal with this sigma."""
    think_s: float = 0.0
    other_s: float = 0.0
    """Of each response, beside the CPU: nobody waits for it."""
    stretch: float = 1.0
    gone: Gone = NEVER
    client_s: Callable[[np.random.Generator], Floats] | None = None
    """Of each response, on its way to the client."""

    @cached_property
    def trace(self) -> tuple[Floats, float, float]:
        """Times (s) of all requests, how long it took, and the CPU time that served."""
        draw = np.random.default_rng(1)
        shape = draw.standard_normal(REQUESTS) if self.spread else draw.exponential(1.0, REQUESTS)
        work = shape if not self.spread else np.exp(self.spread * shape - self.spread**2 / 2)
        work = self.service_s * work
        thinks = self.think_s * draw.exponential(1.0, REQUESTS)
        beside = self.other_s + self.late()
        if self.users is None:
            due = list(np.cumsum(draw.exponential(1 / self.rate, REQUESTS)))
        else:
            due = [self.think_s * draw.exponential() for _ in range(self.users)]
            heapq.heapify(due)
        took, free = np.empty(REQUESTS), 0.0
        for at in range(REQUESTS):
            asked = due[at] if self.users is None else heapq.heappop(due)
            free = self.gone.done(max(asked, free), float(work[at]) * self.stretch)
            took[at] = free + beside[at] - asked
            if self.users is not None:
                heapq.heappush(due, asked + took[at] + thinks[at])
        return took, free, float(work.sum())

    def late(self) -> Floats:
        draw = np.random.default_rng(7)
        return np.zeros(REQUESTS) if self.client_s is None else self.client_s(draw)

    def share_late(self) -> float:
        return float(self.late().sum() / self.trace[0].sum())

    def evidence(self) -> Evidence:
        """What a trial in this world leaves behind."""
        took, duration_s, cpu_s = self.trace
        times = f.of_values([max(1, int(one * 1e9)) for one in took])
        base = f.healthy() if self.users is not None else f.open_model(rate=REQUESTS / duration_s)
        long = [s * 1000 for s in self.gone.lengths[:1] if s > 0.02]
        there = f.window(
            base,
            service_time=times,
            latency=times if self.users is None else None,
            completed=REQUESTS,
            duration_s=duration_s,
            service_time_sum_s=float(took.sum()),
            gaps=tuple(Gap(start_ms=0.0, duration_ms=ms, in_flight=1) for ms in long),
        )
        load = {} if not self.think_s else {"think_kind": "exponential", "think_mean_ms": self.think_s * 1000}
        there = f.part(there, "load", users=self.users, **load)
        used = {"wall_s": duration_s, "cpu_user_s": cpu_s, "cpu_system_s": 0.0}
        return f.part(there, "server_window", **used)

    def figures(self) -> dict[str, float]:
        took, duration_s, _ = self.trace
        named = {n: float(np.quantile(took, p / 100, method="inverted_cdf")) * 1000 for n, p in NAMED.items()}
        return {"requests_per_s": REQUESTS / duration_s, "mean_ms": float(took.mean()) * 1000} | named

    def share_gone(self) -> float:
        _, duration_s, _ = self.trace
        return float(self.gone.lengths[self.gone.starts < duration_s].sum()) / duration_s


def missed(bound: Biases, world: World, truth: World, *, but: tuple[str, ...] = ()) -> dict[str, Any]:
    """Figures of which the true value is not in the bound."""
    measured, true = world.figures(), truth.figures()
    found = {}
    for name in measured:
        one, off = bound.get(name, NO_BIAS), math.log(true[name] / measured[name])
        if not -one.down - SLACK <= off <= one.up + SLACK and name not in but:
            found[name] = (off, -one.down, one.up)
    return found


CROWD = World(users=10)
"""A server that is busy all the time."""
NARROW = World(users=100, service_s=0.0001, spread=0.1)
"""The same, of which all responses take about 10 ms."""
IDLE = World(users=4, other_s=0.003)
"""A server that is busy for 79 % of the time."""
THINKING = World(users=50, think_s=0.1)
OPEN = World(rate=500.0)


class TestCpuLost:
    @pytest.mark.parametrize("world", [CROWD, NARROW, IDLE, THINKING, OPEN])
    @pytest.mark.parametrize("each_s", [None, 0.0002, 0.003, 0.05])
    def test_the_true_figures_lie_in_the_bound(self, world: World, each_s: float | None) -> None:
        """2 % of the CPU went to others, evenly, or in bursts of so long."""
        if each_s is None:
            hit, share = replace(world, stretch=1 / 0.98), 0.02
        else:
            hit = replace(world, gone=Gone.bursts(0.02, each_s, 80.0))
            share = hit.share_gone()
        assert missed(cpu_lost(hit.evidence(), share), hit, world) == {}

    @pytest.mark.parametrize("world", [CROWD, NARROW])
    def test_of_a_busy_server_rate_and_mean_are_off_by_the_share(self, world: World) -> None:
        bound = cpu_lost(world.evidence(), 0.01)
        assert bound["requests_per_s"].high == pytest.approx(1 / 0.99 - 1, rel=0.02)
        assert bound["mean_ms"].low == pytest.approx(-0.01, rel=0.02)
        assert bound["p50_ms"].down <= 0.035

    def test_short_bursts_hit_more_requests_than_their_share_of_the_time(self) -> None:
        """Of responses that all take 10 ms, bursts of 3 ms delay 4 %, with 1.2 % of the time."""
        hit = replace(NARROW, gone=Gone.bursts(0.01, 0.003, 80.0))
        share = hit.share_gone()
        evidence, off = hit.evidence(), math.log(NARROW.figures()["p99_ms"] / hit.figures()["p99_ms"])
        assert off < -0.2
        assert longest(evidence, share).get("p99_ms", NO_BIAS).down < 0.05
        assert cpu_lost(evidence, share)["p99_ms"].down > -off

    def test_a_thread_on_one_of_four_cpus_may_have_lost_all_of_it(self) -> None:
        """It used 0.9 CPUs, and 0.1 were stolen: 2.5 % of the four CPUs, and a ninth of its rate."""
        four = f.part(f.healthy(), "server_window", granted_cpus=4, cpu_user_s=9.0, cpu_system_s=0.0)
        four = f.part(four, "partition", server=(0, 2, 3, 4))
        assert cpu_lost(four, 0.025)["requests_per_s"].high == pytest.approx(1 / 9)

    def test_no_rate_gains_more_than_a_server_that_stood_still_for_as_long(self) -> None:
        """It used 10 % of its CPU, and 5 % were stolen: it could have used half as much again, but when?"""
        seldom = f.part(f.healthy(), "server_window", cpu_user_s=1.0, cpu_system_s=0.0)
        assert cpu_lost(seldom, 0.05)["requests_per_s"].high == pytest.approx(1 / 0.95 - 1)

    def test_what_is_not_known_is_not_bounded(self) -> None:
        blind = f.part(f.open_model(), "server_window", cpu_user_s=None)
        bound = cpu_lost(blind, 0.01)
        assert {name: one.low for name, one in bound.items()} == dict.fromkeys(("mean_ms", *PERCENTILES))
        assert cpu_lost(f.healthy(), 0.0) == {}

    def test_an_open_loop_whose_queue_is_longer_than_its_cpu(self) -> None:
        """A busy thread on four CPUs: 90 % of it, so that 1 % of four CPUs may be 4 % of its own."""
        base = f.part(f.open_model(), "server_window", granted_cpus=4, cpu_user_s=9.0, cpu_system_s=0.0)
        base = f.part(base, "partition", server=(0, 2, 3, 4))
        thread = ThreadUse(pid=1, tid=1, name="node", cpu_s=9.0)
        alone = cpu_lost(base, 0.01)["mean_ms"].down
        assert (
            cpu_lost(f.part(base, "server_window", busiest_thread=thread), 0.01)["mean_ms"].down > 10 * alone
        )

    def test_a_part_of_what_the_server_used_did_not_serve(self) -> None:
        """9.6 of 10 s were used, a tenth of them by a compiler: the rest serves a ninth more with it."""
        bound = cpu_spent(f.healthy(), 0.1)
        assert bound["requests_per_s"].high == pytest.approx(0.096 / (1 - 0.096), rel=1e-6)
        assert bound["server_cpu_us_per_request"].low == pytest.approx(-0.1)
        assert cpu_spent(f.healthy(), 1.0)["server_cpu_us_per_request"].low is None
        assert cpu_spent(f.healthy(), 0.0) == {}


def always(late_s: float) -> Callable[[np.random.Generator], Floats]:
    return lambda draw: np.full(REQUESTS, late_s)  # noqa: ARG005


def sometimes(share: float, late_s: float) -> Callable[[np.random.Generator], Floats]:
    return lambda draw: np.where(draw.random(REQUESTS) < share, late_s, 0.0)


class TestUserTimeLost:
    @pytest.mark.parametrize("world", [World(users=1), IDLE, THINKING, OPEN, NARROW])
    @pytest.mark.parametrize("client", [always(0.00005), sometimes(0.05, 0.002), sometimes(0.002, 0.2)])
    def test_the_true_figures_lie_in_the_bound(
        self, world: World, client: Callable[[np.random.Generator], Floats]
    ) -> None:
        """A wake-up of 50 µs for each response, 2 ms for one in twenty, a segment again for one in 500."""
        late = replace(world, client_s=client)
        bound = user_time_lost(late.evidence(), late.share_late())
        assert missed(bound, late, world) == {}

    @pytest.mark.parametrize("world", [World(users=1), IDLE, THINKING])
    def test_few_syns_that_are_sent_again_spare_the_lower_percentiles(self, world: World) -> None:
        """One request in 500 waits a second: known to be so few, they hide in the tail only."""
        late = replace(world, client_s=sometimes(0.002, 1.0))
        share, evidence = late.share_late(), late.evidence()
        bound = user_time_lost(evidence, share, requests=0.0025)
        assert missed(bound, late, world, but=("requests_per_s",)) == {}
        assert bound["p95_ms"].down < 0.05
        assert bound["p999_ms"].down > 3
        assert user_time_lost(evidence, share)["p95_ms"].down > 0.1

    def test_users_who_are_away_leave_a_shorter_queue(self) -> None:
        """All ten users are in the queue of one CPU. With a tenth of the time elsewhere the others are served
        sooner, and the rate stays: without it most of them would have waited longer.
        """
        late = replace(CROWD, client_s=sometimes(0.05, 0.02))
        share = late.share_late()
        off = math.log(CROWD.figures()["p50_ms"] / late.figures()["p50_ms"])
        bound = user_time_lost(late.evidence(), share)
        assert 0.05 < off < bound["p50_ms"].up + SLACK
        one = f.part(late.evidence(), "load", users=1)
        assert user_time_lost(one, share)["p50_ms"].up == 0.0

    def test_a_rate_that_is_given_does_not_move(self) -> None:
        assert "requests_per_s" not in user_time_lost(f.open_model(), 0.05)
        closed = user_time_lost(f.healthy(), 0.05)
        assert closed["requests_per_s"].high == pytest.approx(0.05 / 0.95)
        assert closed["mean_ms"].low == pytest.approx(-0.05)
        assert user_time_lost(f.healthy(), 0.0) == {}
        assert user_time_lost(f.healthy(), 2.0)["mean_ms"].low is None


def with_times(*values_ms: float, **window: Any) -> Evidence:
    """A closed loop whose requests took so long; as many of each."""
    times = f.of_values([int(ms * 1e6) for ms in values_ms])
    return f.window(f.healthy(), service_time=times, completed=times.count, **window)


HUNDRED = with_times(*range(1, 101))
"""1 to 100 ms, one each: percentile p is p ms."""


class TestPercentiles:
    def test_without_the_longest(self) -> None:
        bound = longest(HUNDRED, 0.1)
        assert bound["p50_ms"].low == pytest.approx(40 / 50 - 1, rel=0.01)
        assert bound["p99_ms"].low == pytest.approx(89 / 99 - 1, rel=0.01)
        assert bound["mean_ms"].low == pytest.approx(45.5 / 50.5 - 1, rel=0.01)
        assert longest(HUNDRED, 0.1, at_random=True)["p50_ms"].low == pytest.approx(45 / 50 - 1, rel=0.01)
        assert longest(HUNDRED, 0.6)["p50_ms"].low is None
        assert longest(HUNDRED, 0.0) == {}

    def test_a_percentile_among_failed_requests_is_not_asked(self) -> None:
        """Of 101 requests one failed, longer than any: p99.9 is among those."""
        assert "p999_ms" not in longest(f.window(HUNDRED, failed=1, errors={"read": 1}), 0.01)

    def test_sooner(self) -> None:
        bound = sooner(HUNDRED, 5.0)
        assert bound["p50_ms"].low == pytest.approx(-0.1, rel=0.01)
        assert sooner(HUNDRED, 60.0)["p50_ms"].low is None

    def test_even_delays_and_large_ones(self) -> None:
        """Of times that are all the same, 0.1 ms of 10 ms is even, and 2 L at least would show. One in ten of
        them 1 ms longer is 1 % of the time as well: p95 is then 10 ms without.
        """
        level = with_times(*[10.0] * 1000)
        assert delayed(level, 0.01)["p50_ms"].low == pytest.approx(-0.01, rel=0.02)
        longer = delayed(with_times(*[10.0] * 900, *[11.0] * 100), 0.01)
        assert longer["p95_ms"].low == pytest.approx(9.9 / 11 - 1, rel=0.02)
        assert longer["p50_ms"].low == pytest.approx(-0.01, rel=0.02)

    def test_delays_too_few_to_reach_a_percentile(self) -> None:
        """A tenth of the requests took 20 ms instead of 10: 0.5 % of the time explains 0.55 % of them."""
        work = with_times(*[10.0] * 900, *[20.0] * 100)
        assert delayed(work, 0.005)["p95_ms"].low == pytest.approx(-0.055 / 20, rel=0.05)
        assert delayed(work, 0.05)["p95_ms"].low == pytest.approx(9.45 / 20 - 1, rel=0.02)
        assert delayed(work, 0.005, at_risk=True)["p95_ms"].low == pytest.approx(-0.005, rel=0.02)

    def test_wrong_requests(self) -> None:
        """2 % wrong, half of them answered: these were the shortest, or all of them the longest."""
        bound = wrong_requests(HUNDRED, 0.02, 0.01)
        assert bound["requests_per_s"].up == bound["requests_per_s"].down == pytest.approx(-math.log(0.98))
        assert bound["p50_ms"].low == pytest.approx(48 / 50 - 1, abs=0.001)
        assert bound["p50_ms"].high == pytest.approx(51 / 50 - 1, abs=0.001)
        assert bound["p999_ms"].high is None
        assert bound["mean_ms"].low == pytest.approx(49.5 / 50.5 - 1, abs=0.001)
        assert wrong_requests(HUNDRED, 0.0, 0.0) == {}

    def test_two_bounds_on_one_effect(self) -> None:
        one = {"p50_ms": Bias(low=-0.1, high=0.2), "p90_ms": Bias(low=-0.1)}
        other = {"p50_ms": Bias(low=-0.2, high=0.1), "p95_ms": Bias(low=-0.1)}
        less, more = narrower(one, other), wider(one, other)
        assert set(less) == {"p50_ms"}
        assert less["p50_ms"].low == pytest.approx(-0.1)
        assert less["p50_ms"].high == pytest.approx(0.1)
        assert more["p50_ms"].low == pytest.approx(-0.2)
        assert more["p50_ms"].high == pytest.approx(0.2)
        assert set(wider(one, other)) == {"p50_ms", "p90_ms", "p95_ms"}
