"""Entries 50 to 54: compared servers differ in more than their programs. Trials are real."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from prony.host.fingerprint import fingerprint
from prony.judge.finding import Kind
from prony.plan.load import Connections
from prony_selftest.faults.model import Setup
from prony_selftest.faults.other_process import SHARED
from prony_selftest.faults.single_trial import EntryResult, with_
from prony_selftest.faults.stored import FEW, WINDOW, keep, shown
from prony_selftest.faults.trial import missing_for, run_setup

TRIALS = 2
ADDRESS = ("{host}", "{port}", "works")
SMALL = Setup(command=(*SHARED, *ADDRESS), load=FEW, measured=WINDOW)
HTTPS = Setup(serve=(), tls=True, load=FEW, measured=WINDOW)
A_HANDSHAKE_EACH = replace(HTTPS, connections=Connections(keep_alive=False))
NO_RESUMPTION = replace(A_HANDSHAKE_EACH, serve=("--no-resumption",))
DEBUG = (*SHARED[:-1], "-Xdev", SHARED[-1])


class SetupDifference(NamedTuple):
    """Two servers whose set-ups differ, and the code that names it."""

    name: str
    fault: str
    equal: Setup
    other: Setup
    code: str


SETUP_DIFFERENCES: dict[int, SetupDifference] = {
    50: SetupDifference("TLS sessions resumed by one server only",
        "both are asked over a new TLS connection for each request, and one of them forgets its sessions",
        A_HANDSHAKE_EACH, NO_RESUMPTION, "resumption"),
    51: SetupDifference("HTTPS compared with HTTP", "one server encrypts, the other does not",
        replace(HTTPS, tls=False), HTTPS, "protocols"),
    52: SetupDifference("IPv4 compared with IPv6", "one server is reached over IPv4, the other over IPv6",
        SMALL,
        replace(SMALL, host="::1", needs=("ipv6",)), "addresses"),
    53: SetupDifference("one server in debug mode",
        "the same program runs with the debugging checks of its runtime in one of the two (-Xdev)", SMALL,
        replace(SMALL, command=(*DEBUG, *ADDRESS)), "flags"),
    54: SetupDifference("one server writes a log",
        "one server writes 400 bytes to its log for each request, the other none", SMALL,
        replace(SMALL, command=(*SHARED, *ADDRESS, "logs")), "writes"),
}  # fmt: skip


def setup_difference(number: int, entry: SetupDifference) -> EntryResult:
    """The comparison that must name the difference, and the same with equal servers."""
    result = EntryResult(number, entry.name, entry.fault, other_tools="each tool measures one server")
    if absent := missing_for(entry.equal) or missing_for(entry.other):
        return with_(result, missing=absent)
    named, screen = _setup_finding(entry.equal, entry.other)
    clean, _ = _setup_finding(entry.equal, entry.equal)
    condition = f"the difference in {entry.code} is intended"
    failures = []
    if named is None or (named["code"], named["kind"]) != (entry.code, Kind.PROVIDED):
        failures.append(f"not named with the code {entry.code}: {named}")
    elif condition not in screen:
        failures.append(f"the answer does not name the condition: {condition}")
    if clean is not None:
        failures.append(f"false alarm in the comparison of equal servers: {clean['reasons'][0]}")
    return with_(
        result,
        reported="nothing" if named is None else f"a condition, setup: {named['reasons'][0]}",
        clean="no condition" if clean is None else "",
        failures=tuple(failures),
    )


def _setup_finding(equal: Setup, other: Setup) -> tuple[dict[str, Any] | None, str]:
    """The finding `setup` of a comparison, if it does something; the answer on the terminal."""
    trials = [
        (name, run_setup(setup, seed))
        for seed in range(1, TRIALS + 1)
        for name, setup in (("a", equal), ("b", other))
    ]
    with shown() as commands:
        identifier = keep(commands.store, trials, fingerprint({}), FEW)
        (part,) = commands.json("results", "show", identifier)["parts"]
        screen = commands.command("results", "show", identifier).stdout
    groups = {group["check"]: group for group in part["findings"]}
    return groups.get("setup"), " ".join(screen.split())


def _runner(number: int, entry: SetupDifference) -> Callable[[bool], EntryResult]:
    def run(_tools: bool) -> EntryResult:
        return setup_difference(number, entry)

    run.__doc__ = f"{number}: {entry.name}."
    return run


COMPARED = {number: _runner(number, entry) for number, entry in SETUP_DIFFERENCES.items()}
