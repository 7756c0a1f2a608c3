"""Explanations compared with a known truth: programs that count the CPU time, system calls, allocations and
hand-overs of their requests are profiled as in an explained trial.

`prony selftest --section explain`: half a minute per program.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from prony.evidence.profile import Profile
from prony_explain.budget import Estimate, cost, shares
from prony_explain.collector import Collector
from prony_explain.difference import Side, difference
from prony_explain.explanation import seen_share
from prony_explain.kernel import cpu_samples
from prony_explain.per_request import per_request
from prony_explain.rules import Part, rules_for
from prony_selftest.programs import FOLDER, NotRun, Program, java, profiler, started
from prony_selftest.slow import slow_table
from prony_selftest.tables import Say, table

WARM_S, WINDOWS, PROFILED_S = 6.0, 6, 8.0
"""Warm-up; number of half-second windows without the profiler; profiled time."""
FRESH_S = 0.05
"""Lines that arrive faster were printed earlier."""
POINTS = 0.05
"""Tolerance for a part's share: five points."""
DIFFERENCES = (
    "program, against the plain program", "application, by its own clock", "application, attributed",
    "covered", "other significant parts, µs",
)  # fmt: skip
COUNTED_WITHIN = 0.05
COUNTED = ("program", "per request", "by the program", "measured", "within 5 %")
CLOCK_CALLS = 2
"""System calls per request for reading the thread's clock, before and after burning."""
PLAIN = {"jvm": {"burn_us": 100}, "python": {"burn_us": 2000}}
"""Interpreters burn longer, as reading a clock costs more there."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A program, and the work of its requests."""

    name: str
    runtime: str
    does: Mapping[str, int]


STAGED = (
    Staged("Java: burns 100 µs", "jvm", {"burn_us": 100}),
    Staged("Java: burns 200 µs", "jvm", {"burn_us": 200}),
    Staged("Java: burns 100 µs, 40 system calls", "jvm", {"burn_us": 100, "calls": 40}),
    Staged("Java: burns 100 µs, allocates 64 KiB", "jvm", {"burn_us": 100, "bytes": 65536}),
    Staged("Java: burns 100 µs, hands over twice and back", "jvm", {"burn_us": 100, "hand": 2}),
    Staged("Java: burns 100 µs, waits for a lock held in sleep", "jvm", {"burn_us": 100, "lock_us": 300}),
    Staged("Python: burns 2 ms", "python", {"burn_us": 2000}),
    Staged("Python: burns 4 ms", "python", {"burn_us": 4000}),
    Staged("Python: burns 2 ms, 800 system calls", "python", {"burn_us": 2000, "calls": 800}),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """A program's own account, and its profile."""

    staged: Staged
    values_us: tuple[float, ...]
    """CPU time per request by window, without the profiler."""
    burned_share: float
    """Share of the process's CPU time by the burning thread's clock, while profiled."""
    profile: Profile
    rate: float

    @property
    def counts(self) -> dict[str, tuple[str, int]]:
        """Known counts per request: counter -> (name, count)."""
        does = self.staged.does
        counts = {
            "system_calls": ("system calls", does["calls"] + CLOCK_CALLS if "calls" in does else 0),
            # Two hand-overs: each side waits once for the other.
            "switches_voluntary": ("voluntary context switches", 2 * does.get("hand", 0)),
            "allocated_bytes": ("bytes allocated", does.get("bytes", 0)),
        }
        return {key: (name, number) for key, (name, number) in counts.items() if number}

    @property
    def side(self) -> Side:
        """Input of a difference. Raises ValueError without a sample."""
        rules = rules_for(self.staged.runtime)
        samples = cpu_samples(self.profile, rules)
        assert samples is not None, "profiled"
        parts = shares(samples, rules, seen_share=seen_share(self.profile))
        return Side(self.staged.name, self.values_us, parts, per_request(self.profile, self.rate))

    @property
    def application(self) -> float:
        """The share attributed to the application."""
        estimate = self.side.shares.parts.get(Part.APPLICATION)
        return estimate.value if estimate is not None else 0.0

    @property
    def burned_us(self) -> Estimate:
        """CPU time burned per request, by the program's clock."""
        return cost([value * self.burned_share for value in self.values_us])


def run(staged: Staged, say: Say) -> Ran:
    """Warm up, measure without a profiler, then with. Raises NotRun."""
    with started(_command(staged)) as program:
        begun = time.monotonic()
        while time.monotonic() - begun < WARM_S:
            _line(program)
        read = [_line(program)]
        read += [_line(program) for _ in range(WINDOWS)]
        collector = Collector(profiler)
        collector.attach([program.process.pid])
        first = _fresh(program)
        collector.begin(PROFILED_S)
        begun = time.monotonic()
        while time.monotonic() - begun < PROFILED_S:
            last = _line(program)
        took_s = time.monotonic() - begun
        profile = collector.end()
    if profile.cpu is None or not profile.cpu.total:
        raise NotRun("; ".join(profile.missing) or "no samples")
    values = tuple((b[1] - a[1]) / (b[0] - a[0]) / 1000 for a, b in itertools.pairwise(read))
    say(f"{staged.name}: {len(values)} windows, {profile.cpu.total} samples by {profile.profiler}")
    return Ran(
        staged, values, (last[2] - first[2]) / (last[1] - first[1]), profile, (last[0] - first[0]) / took_s
    )


def _command(staged: Staged) -> list[str]:
    """Raises NotRun."""
    does = [f"{name}={value}" for name, value in staged.does.items()]
    if staged.runtime == "jvm":
        return [java(), "-Xmx256m", str(FOLDER / "Staged.java"), *does]
    return [sys.executable, str(FOLDER / "staged.py"), *does]


def _fresh(program: Program) -> tuple[int, int, int]:
    """A line printed while waiting; earlier lines are skipped."""
    while True:
        begun = time.monotonic()
        line = _line(program)
        if time.monotonic() - begun > FRESH_S:
            return line


def _line(program: Program) -> tuple[int, int, int]:
    requests, cpu_ns, burned_ns = map(int, program.line().split())
    return requests, cpu_ns, burned_ns


def explain_tables(_share: float, say: Say) -> str:
    """Four tables: shares, differences from the plain program, counters, slow requests."""
    ran: dict[str, Ran] = {}
    rows: list[tuple[str, ...]] = []
    for staged in STAGED:
        try:
            ran[staged.name] = result = run(staged, say)
        except (NotRun, OSError) as fault:
            rows.append((staged.name, "", "", "", f"not run: {fault}"))
            continue
        rows.append(share_row(result))
    others = [difference_row(name, of, ran) for name, of in ran.items() if _plain(of, ran) is not of]
    head = (
        "program", "application, by its own clock", "attributed to the application", "per request",
        "within five points",
    )  # fmt: skip
    return "\n\n".join(
        [
            table(head, rows),
            table(DIFFERENCES, [row for row in others if row]),
            table(COUNTED, [row for result in ran.values() for row in counter_rows(result)]),
            slow_table(say),
        ]
    )


def share_row(ran: Ran) -> tuple[str, ...]:
    """The application's share, by its own clock and attributed, and its counters."""
    counted = ran.side.per_request
    names = {
        "system_calls": "system calls",
        "allocated_bytes": "bytes",
        "switches_voluntary": "voluntary switches",
    }
    counters = ", ".join(f"{counted[key]:,.3g} {name}" for key, name in names.items() if key in counted)
    right = abs(ran.application - ran.burned_share) <= POINTS
    return (
        ran.staged.name,
        f"{ran.burned_share:.1%}",
        f"{ran.application:.1%}",
        counters,
        "yes" if right else "no",
    )


def counter_rows(ran: Ran) -> list[tuple[str, ...]]:
    """Counters with a known value."""
    rows: list[tuple[str, ...]] = []
    for key, (name, known) in ran.counts.items():
        counted = ran.side.per_request.get(key)
        right = counted is not None and abs(counted / known - 1) <= COUNTED_WITHIN
        measured = "not counted" if counted is None else f"{counted:,.{0 if known >= 100 else 2}f}"
        rows.append((ran.staged.name, name, f"{known:,}", measured, "yes" if right else "no"))
    return rows


def _plain(server: Ran, ran: Mapping[str, Ran]) -> Ran | None:
    return next(
        (
            r
            for r in ran.values()
            if r.staged.runtime == server.staged.runtime and r.staged.does == PLAIN[server.staged.runtime]
        ),
        None,
    )


def difference_row(name: str, server: Ran, ran: Mapping[str, Ran]) -> tuple[str, ...] | None:
    """A program against the plain program of its language; None without it."""
    plain = _plain(server, ran)
    if plain is None:
        return None
    known = server.burned_us.minus(plain.burned_us).value
    apart = difference(server.side, plain.side)
    sign = 1 if apart.more == name else -1
    parts = {part.part: part for part in apart.parts}
    mine = parts.get(Part.APPLICATION)
    if mine is None or mine.low_us is None or mine.high_us is None:
        return name, f"{known:+.1f} µs", "no interval", "", ""
    low, high = sorted((sign * mine.low_us, sign * mine.high_us))
    others = [
        f"{sign * part.us:+.1f} {part.part.value}"
        for part in apart.parts
        if part.shown and part.part is not Part.APPLICATION
    ]
    return (
        name,
        f"{known:+.1f} µs",
        f"{sign * mine.us:+.1f} µs [{low:.1f}, {high:.1f}]",
        "yes" if low <= known <= high else "no",
        ", ".join(others),
    )
