"""Faults of a part: one thread of the client, one worker of the server, the slowest percent."""

from __future__ import annotations

from prony.plan.load import ClosedLoad, OpenLoad, SteadyWindow
from prony_selftest.faults.model import Entry, Setup, SetupResult, coded

TAIL = ("--delay", "bimodal:5ms,25ms,0.03")
"""Three responses in a hundred are slower."""
STEADY_OPEN = OpenLoad(rate_per_s=400, arrivals="constant", max_users=200)
"""A scheduled rate, which a slower tail cannot lower."""
WINDOW = SteadyWindow(window_s=9.0)
SIXTEEN = ClosedLoad(users=16)


DRIFTS = 3.0
"""Minimum residual drift bound of p99 ÷ that of p50."""


def _one_thread(outcome: SetupResult) -> str | None:
    return coded("stall", "client_stall", outcome)


def _a_part(outcome: SetupResult) -> str | None:
    """A stall of the server's, not the client's, that p99 does not show."""
    p99_ms = outcome.figures.get("p99_ms")
    if p99_ms is None or p99_ms > 100:
        return f"p99 is {p99_ms} ms: it shows the freeze of 300 ms, so nothing was hidden"
    return coded("stall", "part_stalled", outcome)


def _only_the_tail(outcome: SetupResult) -> str | None:
    middle, tail = (outcome.judgement.plateau(name) for name in ("p50_ms", "p99_ms"))
    if middle is None or tail is None or tail.bias.size < DRIFTS * middle.bias.size:
        return f"the bound of p99 is not {DRIFTS:g} times that of p50: {tail}, {middle}"
    return None


PARTIAL: tuple[Entry, ...] = (
    Entry(28, "one client thread stands still",
        "one of the load generator's two threads stops for 50 ms once a second; the other goes on",
        Setup(client_threads=2, injected_faults=("stalled_thread",)), ("stall",), Setup(client_threads=2),
        _one_thread, other_tools=False),
    Entry(29, "one of four workers freezes",
        "one connection in four is without a response for 300 ms of each second; the others are answered",
        Setup(serve=("--work", "100us", "--stall", "every=1s,for=300ms,connections=1/4"), load=SIXTEEN),
        ("stall",), Setup(load=SIXTEEN), _a_part),
    Entry(30, "only the tail drifts",
        "the slowest 3 % get slower throughout the window; p50 and throughput stay",
        Setup(serve=(*TAIL, "--slowdown", "per-minute=20,of=tail,after=2s"), load=STEADY_OPEN,
            measured=WINDOW), ("steady",), Setup(serve=TAIL, load=STEADY_OPEN, measured=WINDOW),
        _only_the_tail, other_tools=False),
)  # fmt: skip
