"""Explanations where the truth is known: programs that count what they burn, call, allocate and hand over,
profiled as a server's explained trial is; is it found in its part, and is the difference of two of them?

`prony selftest --section explain`: about half a minute for each program.
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
"""Before anything is read; windows of half a second without a profiler; with it."""
FRESH_S = 0.05
"""A line for which nobody had to wait so long was there before."""
POINTS = 0.05
"""A part is right when it is within five points of its truth."""
DIFFERENCES = (
    "program, against the plain one",
    "application, by its own clock",
    "application, found",
    "holds it",
    "other parts that are shown, µs",
)
COUNTED_WITHIN = 0.05
COUNTED = ("program", "per request", "by the program", "found", "within 5 %")
CLOCK_CALLS = 2
"""System calls of each request beside those on purpose: its thread's clock, before and after it burns."""
PLAIN = {"jvm": {"burn_us": 100}, "python": {"burn_us": 2000}}
"""Of an interpreter more: reading a clock is not free there."""


@dataclass(frozen=True, slots=True)
class Staged:
    """One program and what its requests do."""

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
    """What a program said of itself, and what was found."""

    staged: Staged
    values_us: tuple[float, ...]
    """CPU time per request by window, without the profiler."""
    burned_share: float
    """Of the CPU time of its process, by the clock of the thread that burns, while it was profiled."""
    profile: Profile
    rate: float

    @property
    def counts(self) -> dict[str, tuple[str, int]]:
        """What a request counts on purpose: name of the counter -> what it is called, and how many."""
        does = self.staged.does
        known = {
            "system_calls": ("system calls", does["calls"] + CLOCK_CALLS if "calls" in does else 0),
            # There and back: each side waits once for the other.
            "switches_voluntary": ("voluntary context switches", 2 * does.get("hand", 0)),
            "allocated_bytes": ("bytes allocated", does.get("bytes", 0)),
        }
        return {key: (name, number) for key, (name, number) in known.items() if number}

    @property
    def side(self) -> Side:
        """For a difference. Raises ValueError without a sample."""
        rules = rules_for(self.staged.runtime)
        samples = cpu_samples(self.profile, rules)
        assert samples is not None, "profiled"
        found = shares(samples, rules, seen_share=seen_share(self.profile))
        return Side(self.staged.name, self.values_us, found, per_request(self.profile, self.rate))

    @property
    def application(self) -> float:
        """The share that was attributed to the application."""
        found = self.side.shares.parts.get(Part.APPLICATION)
        return found.value if found is not None else 0.0

    @property
    def burned_us(self) -> Estimate:
        """Per request, by its own clock."""
        return cost([value * self.burned_share for value in self.values_us])


def run(staged: Staged, say: Say) -> Ran:
    """Start it, let it warm up, read it without a profiler, then with. Raises NotRun."""
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
        raise NotRun("; ".join(profile.missing) or "no sample was taken")
    values = tuple((b[1] - a[1]) / (b[0] - a[0]) / 1000 for a, b in itertools.pairwise(read))
    say(f"{staged.name}: {len(values)} windows, {profile.cpu.total} samples by {profile.profiler}")
    return Ran(
        staged,
        values,
        (last[2] - first[2]) / (last[1] - first[1]),
        profile,
        (last[0] - first[0]) / took_s,
    )


def _command(staged: Staged) -> list[str]:
    """Raises NotRun."""
    does = [f"{name}={value}" for name, value in staged.does.items()]
    if staged.runtime == "jvm":
        return [java(), "-Xmx256m", str(FOLDER / "Staged.java"), *does]
    return [sys.executable, str(FOLDER / "staged.py"), *does]


def _fresh(program: Program) -> tuple[int, int, int]:
    """A line that was waited for: those that were printed while nobody read are old."""
    while True:
        begun = time.monotonic()
        line = _line(program)
        if time.monotonic() - begun > FRESH_S:
            return line


def _line(program: Program) -> tuple[int, int, int]:
    requests, cpu_ns, burned_ns = map(int, program.line().split())
    return requests, cpu_ns, burned_ns


def explain_tables(_share: float, say: Say) -> str:
    """Four tables: shares, differences from the plain program of a language, counters, slow requests."""
    ran: dict[str, Ran] = {}
    told: list[tuple[str, ...]] = []
    for staged in STAGED:
        try:
            ran[staged.name] = found = run(staged, say)
        except (NotRun, OSError) as fault:
            told.append((staged.name, "", "", "", f"not run: {fault}"))
            continue
        told.append(share_row(found))
    rows = [difference_row(name, one, ran) for name, one in ran.items() if _plain(one, ran) is not one]
    head = (
        "program",
        "application, by its own clock",
        "found as application",
        "per request",
        "within five points",
    )
    return "\n\n".join(
        [
            table(head, told),
            table(DIFFERENCES, [row for row in rows if row]),
            table(COUNTED, [row for one in ran.values() for row in counter_rows(one)]),
            slow_table(say),
        ]
    )


def share_row(found: Ran) -> tuple[str, ...]:
    """One program: its own share against the attributed one, and its counters."""
    counted = found.side.per_request
    names = {
        "system_calls": "system calls",
        "allocated_bytes": "bytes",
        "switches_voluntary": "voluntary switches",
    }
    beside = ", ".join(f"{counted[key]:,.3g} {name}" for key, name in names.items() if key in counted)
    right = abs(found.application - found.burned_share) <= POINTS
    return (
        found.staged.name,
        f"{found.burned_share:.1%}",
        f"{found.application:.1%}",
        beside,
        "yes" if right else "no",
    )


def counter_rows(found: Ran) -> list[tuple[str, ...]]:
    """What one program counts on purpose with each request; of most programs nothing."""
    rows: list[tuple[str, ...]] = []
    for key, (name, known) in found.counts.items():
        counted = found.side.per_request.get(key)
        right = counted is not None and abs(counted / known - 1) <= COUNTED_WITHIN
        told = "not counted" if counted is None else f"{counted:,.{0 if known >= 100 else 2}f}"
        rows.append((found.staged.name, name, f"{known:,}", told, "yes" if right else "no"))
    return rows


def _plain(one: Ran, ran: Mapping[str, Ran]) -> Ran | None:
    return next(
        (
            r
            for r in ran.values()
            if r.staged.runtime == one.staged.runtime and r.staged.does == PLAIN[one.staged.runtime]
        ),
        None,
    )


def difference_row(name: str, one: Ran, ran: Mapping[str, Ran]) -> tuple[str, ...] | None:
    """A program against the plain one of its language; None without that."""
    plain = _plain(one, ran)
    if plain is None:
        return None
    known = one.burned_us.minus(plain.burned_us).value
    found = difference(one.side, plain.side)
    sign = 1 if found.more == name else -1
    told = {part.part: part for part in found.parts}
    mine = told.get(Part.APPLICATION)
    if mine is None or mine.low_us is None or mine.high_us is None:
        return name, f"{known:+.1f} µs", "no interval", "", ""
    low, high = sorted((sign * mine.low_us, sign * mine.high_us))
    others = [
        f"{sign * part.us:+.1f} {part.part.value}"
        for part in found.parts
        if part.shown and part.part is not Part.APPLICATION
    ]
    return (
        name,
        f"{known:+.1f} µs",
        f"{sign * mine.us:+.1f} µs [{low:.1f}, {high:.1f}]",
        "yes" if low <= known <= high else "no",
        ", ".join(others),
    )
