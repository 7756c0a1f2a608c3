"""The limits of all checks as one value, each with its default and where that comes from. Must not know
evidence.

A plan may set any of them; the limit that was in force is printed with the finding.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from prony.evidence.base import Record
from prony.steady.limits import SteadyLimits

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
NotNegative = Annotated[float, Field(ge=0.0)]


class CheckLimits(Record):
    """What a trial must keep to be believed. Shares are 0..1; a unit is in the name where there is one."""

    errors_suspect_share: Share = 0.0
    """More failed requests than this: suspect. Any failure is worth a word."""
    errors_invalid_share: Share = 0.01
    """More than this: the figure describes the errors."""

    little_deviation: Share = 0.01
    """Two-sided. Faban allows 2.5 % on one side of unclipped cycles; clipped cycles need no such slack."""
    little_turnaround_us: NotNegative = 10.0
    """User time that is missing per request, all users being alive: up to this suspect, beyond it invalid. A
    send takes the engine about 1 µs outside of the request's own time, a script in Lua a few more."""

    think_deviation: Share = 0.01
    """Mean actual against mean drawn think time, two-sided (Faban's fhb uses 1 %)."""
    think_overshoot_share: Share = 0.01
    """p99 overshoot as a share of the mean think time ..."""
    think_overshoot_floor_ms: NotNegative = 1.0
    """... but never asked to be better than this: timers of a general-purpose kernel are not."""

    schedule_achieved_min: Share = 0.99
    """Sent ÷ due in every row. k6, wrk2 and vegeta end with exit code 0 below it."""
    schedule_lag_floor_ms: NotNegative = 1.0
    """The p99.9 send lag may always be this much ..."""
    schedule_lag_share: Share = 0.10
    """... or this share of the median latency, whichever is more."""

    arrivals_alpha: Share = 0.01
    """Significance of the Kolmogorov-Smirnov test of the gaps (Lancet tests against twice the critical
    value)."""

    arrivals_resolution_us: NotNegative = 5.0
    """One thread cannot make, or tell apart, two sends closer than this: a send and a look at the clock.
    It moves the distribution of the gaps by up to rate per thread x resolution, which is forgiven."""

    client_cpu_max: Share = 0.85
    """CPU ÷ wall of the busiest engine thread."""
    client_lag_max_ms: Positive = 1.0
    """p99 of the loop lag: how old an event may be before the client looks at it."""
    client_ceiling_max: Share = 0.80
    """Throughput ÷ what the engine reached with this request shape against the reference server."""

    bound_cpu_min: Share = 0.75
    """Server CPU ÷ granted CPU from which a server counts as CPU-bound (the-benchmarker's saturation
    rule)."""
    bound_tolerance: Share = 0.05
    """How near to a declared ceiling, or to the offered rate, counts as bound by it."""
    bound_throttled_periods_min: Share = 0.5
    """Share of the CPU quota's periods that were throttled from which the quota is the bound."""

    ports_suspect_share: Positive = 0.80
    """Forecast need ÷ ports per (source, destination)."""
    ports_refuse_share: Positive = 1.0
    ports_hold_s: Positive = 60.0
    """How long a closed connection keeps its port: TCP_TIMEWAIT_LEN of Linux, not settable."""
    ports_hold_reused_s: Positive = 1.0
    """The same where the kernel may reuse a port in TIME_WAIT (net.ipv4.tcp_tw_reuse)."""

    descriptors_client_reserve: Annotated[int, Field(ge=0)] = 64
    """Descriptors the client needs besides one per connection (rings, timers, pipes)."""
    descriptors_ring: Annotated[int, Field(ge=1)] = 4
    """Descriptors of a ring with its bells. One ring holds as many connections as the process may open files
    (65,536 at most), without a descriptor each (docs/engine.md)."""
    descriptors_ring_connections: Annotated[int, Field(ge=1)] = 65_536
    descriptors_server_reserve: Annotated[int, Field(ge=0)] = 256
    """Descriptors a server needs besides its connections (jars, logs, selectors)."""
    descriptors_used_max: Share = 0.90
    """Descriptors in use ÷ limit at the window's end."""

    connections_suspect_ratio: Positive = 1.01
    """Opened ÷ expected."""
    connections_invalid_ratio: Positive = 2.0
    connections_extra_share: Share = 0.001
    """... as long as the unexpected connections are more than this share of the requests: one reconnection in
    80,000 requests does not bend a figure."""
    connections_invalid_share: Share = 0.05
    """Unexpected connections ÷ requests from which keep-alive is as good as off (fewer than 20 requests
    each)."""

    steady_change: Share = SteadyLimits().change
    """A difference between the levels of two segments, or a trend over the window, that may not be
    exceeded."""
    steady_change_invalid: Share = 0.10
    """From here on the mean over the window describes neither level."""
    steady_penalty: Positive = SteadyLimits().penalty
    """Pelt's penalty in units of the residual variance; see docs/method.md for its calibration."""
    steady_min_rows: Annotated[int, Field(ge=6)] = 6
    """Rows below which nothing can be said."""

    warm_share: Share = 0.01
    """JIT compilation and class loading ÷ CPU of the window (HttpArena#1417)."""
    warm_share_invalid: Share = 0.10
    warm_class_cost_ms: NotNegative = 0.3
    """CPU per loaded class, an estimate: Spring Boot loads about 10,000 classes in about 3 s of one CPU."""

    isolation_steal: Share = 0.01
    """CPU time that the hypervisor gave to somebody else, on any CPU of the trial."""
    isolation_others: Share = 0.05
    """CPU time of foreign processes on the server's or the client's CPUs."""
    isolation_throttled: Share = 0.01
    """Share of the window in which the CPU quota held the server back."""
    isolation_invalid_factor: Annotated[float, Field(ge=1.0)] = 5.0
    """So many times these limits and the disturbance is no longer small beside the effect measured."""

    host_frequency_drop: Share = 0.05
    """How far the CPU clock may fall from the window's start to its end."""

    samples_confidence: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.99
    """With this confidence at least one sample lies beyond a printed percentile (MLPerf LoadGen)."""
    samples_required_percentile: Annotated[float, Field(gt=0.0, lt=100.0)] = 99.0
    """The highest percentile that the reader asked for; not being able to print it is suspect."""

    content_invalid_share: Share = 0.01
    """Share of answers that break the declaration from which the figure describes wrong answers."""

    stall_p99_factor: Positive = 10.0
    """A gap counts as a stall when it is this many times p99 ..."""
    stall_floor_ms: NotNegative = 50.0
    """... and longer than this."""

    @property
    def steady(self) -> SteadyLimits:
        """What the detector of `prony.steady` goes by under these limits."""
        return SteadyLimits(change=self.steady_change, penalty=self.steady_penalty)
