"""client: was the load generator the bottleneck. Must not know what the server did."""

from __future__ import annotations

from dataclasses import dataclass

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Positive, Share, always, check
from prony.judge.finding import Finding, Status, no_window
from prony.judge.window import measured
from prony.numbers import milliseconds, number, percent

CHECK = "client"
SOURCE = (
    "one signal alone gives false alarms (Hyperfoil PR#835) or misses (k6 at 92-97 % of its ceiling passed)"
)
SIGNALS_NEEDED = 2
"""Independent signals that must be readable to clear the client, and that must agree to call it saturated."""


class ClientLimits(DeclaredLimits):
    client_cpu_max: Share = 0.85
    """CPU ÷ wall of the busiest engine thread."""
    client_lag_max_ms: Positive = 1.0
    """p99 loop lag: the age of an event when the engine looks at it."""
    client_ceiling_max: Share = 0.80
    """Throughput ÷ this client's calibrated ceiling for the request shape (against the reference server)."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One sign of a busy client."""

    over: bool
    text: str


def signals(evidence: Evidence, limits: ClientLimits) -> tuple[list[Signal], float | None]:
    """The signals that can be read, and the CPU share of the busiest engine thread."""
    window = measured(evidence)
    if window is None:
        return [], None
    found: list[Signal] = []
    shares = [share for t in window.threads if (share := t.busy_share) is not None]
    # A thread that cannot be read may be the busiest: some of them prove nothing.
    cpu = max(shares) if shares and len(shares) == len(window.threads) else None
    if cpu is not None:
        found.append(Signal(cpu >= limits.client_cpu_max, f"busiest thread at {percent(cpu)} CPU"))
    lags = [t.loop_lag_p99_ns for t in window.threads if t.loop_lag_p99_ns is not None]
    if lags and len(lags) == len(window.threads):
        lag_ms = max(lags) / 1e6
        found.append(Signal(lag_ms >= limits.client_lag_max_ms, f"loop lag p99 {milliseconds(lag_ms)}"))
    if window.submissions_put_off:
        text = f"its kernel put off what it sent, {number(window.submissions_put_off)} times"
        found.append(Signal(True, text))
    calibration = evidence.calibration
    if calibration is not None and calibration.ceiling_per_s > 0:
        share = window.completed / window.duration_s / calibration.ceiling_per_s
        found.append(
            Signal(
                share >= limits.client_ceiling_max,
                f"{percent(share)} of its ceiling (calibrated against the reference server)",
            )
        )
    return found, cpu


@check(ClientLimits, order=80, essential=always)
def client(evidence: Evidence, limits: ClientLimits) -> Finding:
    """Thread CPU, loop lag, share of the calibrated ceiling: one over the limit is suspect, two
    are invalid.
    """
    limit = (
        f"CPU below {percent(limits.client_cpu_max)}, "
        f"loop lag p99 below {milliseconds(limits.client_lag_max_ms)}, "
        f"throughput below {percent(limits.client_ceiling_max)} of the calibrated ceiling; "
        "one over suspect, two invalid"
    )
    if measured(evidence) is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    found, cpu = signals(evidence, limits)
    over = [signal for signal in found if signal.over]
    advice = ""
    if len(over) >= SIGNALS_NEEDED:
        status = Status.INVALID
        reason = "load generator saturated: " + "; ".join(s.text for s in over)
        advice = "give the client more CPUs (--client-cpus) or reduce the load"
    elif over:
        status = Status.SUSPECT
        reason = "the load generator may have limited throughput: " + "; ".join(s.text for s in over)
        advice = "repeat with more client CPUs: if the figure rises, the client was the bottleneck"
    elif len(found) < SIGNALS_NEEDED:
        status = Status.UNKNOWN
        reason = f"{len(found)} of the {SIGNALS_NEEDED} signals needed could be read" + "".join(
            f"; {s.text}" for s in found
        )
    else:
        status = Status.VALID
        reason = "; ".join(s.text for s in found)
    return Finding(
        check=CHECK, status=status, value=cpu, limit=limit, reason=reason, advice=advice, source=SOURCE
    )


def client_bound(evidence: Evidence, limits: ClientLimits) -> bool:
    """Whether at least two signals are over their limits."""
    return sum(signal.over for signal in signals(evidence, limits)[0]) >= SIGNALS_NEEDED
