"""Repeats a clean run until it conforms, and reports what remains.

The rule: a finding that is gone in a repeat was caused by this host, and is reported. That a trial does not
conform in every attempt is a false alarm, with one exception: a check in `BUSY`, when the host's own readings
show another process on its CPUs in every attempt. Bounds and conditions accuse nobody.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from prony.judge.finding import Kind
from prony_selftest.faults.model import Setup, SetupResult, said
from prony_selftest.faults.trial import run_setup

PAUSES_S = (1.0, 3.0, 6.0)
"""Before each repeat; the disturbance may be gone by then."""
BUSY = frozenset({"schedule", "think", "little", "samples", "streams", "hosts"})
"""Checks that another process on the same CPUs can keep from conforming. Errors, connections, content,
counts, arrivals and ports are not among them: missing CPU time explains none of those. Little's law is: users
who wait for a client without CPU are not in the system.
"""
PATIENCE = 4
"""Attempts for a clean run whose findings another process explains: one more can only help."""
OTHERS, STEAL = 0.02, 0.005
"""CPU share of other processes, and steal, from which a trial counts as disturbed. Below the limits of the
check `isolation`, since an effect may begin below the limit of its cause.
"""


@dataclass(frozen=True, slots=True)
class CleanResult:
    """What the attempts of a clean run showed."""

    attempts: int
    false_alarms: dict[str, str]
    """Check -> reason, of findings in every attempt that no other process explains: a defect of the judge."""
    explained: dict[str, str]
    """Check -> reason, of findings in every attempt that another process explains."""
    gone: tuple[str, ...]
    """Checks that kept an earlier attempt only from conforming."""
    outcome: SetupResult
    """The last attempt."""

    @property
    def summary(self) -> str:
        """For the table."""
        if self.false_alarms:
            return "false alarm: " + ", ".join(self.false_alarms)
        if self.explained:
            return "does not conform on this busy host: " + ", ".join(self.explained)
        found = "conforms"
        if self.gone:
            found += f" at attempt {self.attempts} (earlier, from this host: {', '.join(self.gone)})"
        return f"{found}, {MAIN_FIGURE} {said(self.outcome.judgement.bias(MAIN_FIGURE))}"


MAIN_FIGURE = "requests_per_s"
_known: list[tuple[Setup, CleanResult]] = []


def run_clean(setup: Setup) -> CleanResult:
    """Up to four trials of this set-up. Entries that share a clean run share its trials."""
    known = next((result for done, result in _known if done == setup), None)
    if known is None:
        known = _attempt(setup)
        if not known.false_alarms:
            _known.append((setup, known))
    return known


def _attempt(setup: Setup) -> CleanResult:
    seen: list[SetupResult] = []
    for seed, pause_s in enumerate((0.0, *PAUSES_S), start=1):
        time.sleep(pause_s)
        seen.append(run_setup(setup, seed, kept=True))
        told = conclude(seen)
        if not told.false_alarms and (not told.explained or len(seen) >= PATIENCE):
            break
    return conclude(seen)


def conclude(seen: list[SetupResult]) -> CleanResult:
    """The rule, over all attempts so far."""
    last = problems(seen[-1])
    every = {check: reason for check, reason in last.items() if all(check in problems(s) for s in seen)}
    explainable = set(BUSY) if all(disturbed(outcome) for outcome in seen) else set()
    return CleanResult(
        attempts=len(seen),
        false_alarms={check: reason for check, reason in every.items() if check not in explainable},
        explained={check: reason for check, reason in every.items() if check in explainable},
        gone=tuple(sorted({check for s in seen for check in problems(s)} - every.keys())),
        outcome=seen[-1],
    )


def problems(outcome: SetupResult) -> dict[str, str]:
    """Check -> reason, of every finding that keeps this trial from conforming."""
    return {one.check: one.reason for one in outcome.judgement.not_conforming}


def disturbed(outcome: SetupResult) -> bool:
    """Whether the host's own readings show another process on its CPUs; on one CPU, client and server disturb
    each other.
    """
    if outcome.evidence.partition is not None and outcome.evidence.partition.shared:
        return True
    if outcome.kind("host") is Kind.BUDGET:
        return True
    host, sides = outcome.evidence.host_window, outcome.evidence.partition
    if host is None:
        return False
    ours = set(sides.server) | set(sides.client) if sides is not None else set()
    others = (host.others_on_server_cpus or 0.0, host.others_on_client_cpus or 0.0)
    steal = max((cpu.steal for cpu in host.cpus if not ours or cpu.cpu in ours), default=0.0)
    return max(others) >= OTHERS or steal >= STEAL
