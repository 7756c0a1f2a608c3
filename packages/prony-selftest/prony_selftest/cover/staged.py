"""Staged faults of known size, real engine and reference server: do bounds cover an undisturbed twin?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from prony.errors import EnvironmentFault
from prony.plan.load import OpenLoad, SteadyWindow
from prony.report.labels import label_of
from prony_selftest.faults.clean_run import disturbed
from prony_selftest.faults.disturbances import burner, deep_link, shallow_link
from prony_selftest.faults.model import Setup, SetupResult, hello, overlaps
from prony_selftest.faults.trial import missing_for, run_setup
from prony_selftest.tables import Say, plus_minus, table

WINDOW = SteadyWindow(window_s=6.0)
FIGURES = ("requests_per_s", "mean_ms", "p50_ms", "p99_ms")


@dataclass(frozen=True, slots=True)
class Fault:
    """A set-up, and its twin without the fault."""

    name: str
    setup: Setup
    twin: Setup
    figures: tuple[str, ...] = FIGURES


PLAIN = Setup(measured=WINDOW)
OPEN = Setup(load=OpenLoad(rate_per_s=1500, max_users=200), measured=WINDOW)
BYTES = Setup(
    serve=("--body-bytes", "30000"), workload=hello(expect=False), measured=WINDOW, needs=("root", "tc")
)
"""The link is the bound: without lost segments, too."""

FAULTS: tuple[Fault, ...] = (
    Fault("nothing", PLAIN, PLAIN),
    Fault("another process takes half of the server's CPU",
        replace(PLAIN, disturbance=burner("server"), needs=("two-cpus",)), PLAIN),
    Fault("the same under an open load", replace(OPEN, disturbance=burner("server"), needs=("two-cpus",)),
        OPEN),
    Fault("another process takes half of the client's CPU",
        replace(PLAIN, disturbance=burner("client"), needs=("two-cpus",)), PLAIN),
    Fault("client and server on one CPU", replace(PLAIN, shared_cpus=True, needs=("two-cpus",)), PLAIN),
    Fault("0.5 % errors", replace(PLAIN, serve=("--work", "100us", "--errors", "share=0.005,fast=yes")),
        PLAIN),
    Fault("segments are lost", replace(BYTES, context=shallow_link), replace(BYTES, context=deep_link)),
)  # fmt: skip


def staged_tables(runs: int, say: Say) -> Iterator[str]:
    """A row per fault: `runs` pairs of an undisturbed and a faulty trial. The table after each fault."""
    rows = []
    for fault in FAULTS:
        say(f"staged: {fault.name}")
        rows.append((fault.name, *_row(fault, runs)))
        yield table(("fault", "conform", *map(label_of, FIGURES)), rows) + "\n"


def _row(fault: Fault, runs: int) -> tuple[str, ...]:
    absent = missing_for(fault.setup) or missing_for(fault.twin)
    if absent:
        return (f"not run: needs {absent}", *("" for _ in FIGURES))
    try:
        pairs = [(run_setup(fault.twin, seed), run_setup(fault.setup, seed)) for seed in range(1, runs + 1)]
    except EnvironmentFault as end:
        return (f"not run: {end}", *("" for _ in FIGURES))
    conforming = sum(faulty.judgement.conforms for _, faulty in pairs)
    busy = sum(disturbed(true) for true, _ in pairs)
    return (
        f"{conforming}/{runs}" + (f" ({busy} disturbed by another process)" if busy else ""),
        *(_cell(pairs, name) for name in FIGURES),
    )


def _cell(pairs: list[tuple[SetupResult, SetupResult]], name: str) -> str:
    """Conforming trials whose bounds hold the twin's figure, and the first that does not."""
    known = [
        (true, faulty)
        for twin, disturbed_trial in pairs
        if disturbed_trial.judgement.conforms
        and (true := twin.estimates.get(name)) is not None
        and (faulty := disturbed_trial.estimates.get(name)) is not None
    ]
    if not known:
        return ""
    outside = [(true, faulty) for true, faulty in known if not overlaps(true, faulty)]
    text = f"{len(known) - len(outside)}/{len(known)}; {plus_minus(known[0][1].bias.half)}"
    return text + (f" **{outside[0][0].value / outside[0][1].value - 1:+.1%}**" if outside else "")
