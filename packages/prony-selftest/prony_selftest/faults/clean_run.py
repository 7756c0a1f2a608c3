"""Repeats a clean run until it conforms, and reports what remains.

A finding that is gone in a repeat was caused by this host. Non-conformance in every attempt is a false alarm,
except for checks in `BUSY` when the host's own readings show another process on its CPUs in every attempt.
Bounds and conditions are no alarms.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from prony.judge.finding import Kind
from prony_selftest.faults.model import Setup, SetupResult, bias_range
from prony_selftest.faults.trial import run_setup

PAUSES_S = (1.0, 3.0, 6.0)
"""Pauses before repeats, for a disturbance to pass."""
BUSY = frozenset({"schedule", "think", "little", "samples", "streams", "hosts"})
"""Checks that another process on the same CPUs can fail. Missing CPU time explains no finding of errors,
connections, content, counts, arrivals and ports; it does explain Little's law: users who wait for a client
without CPU are not in the system.
"""
PATIENCE = 4
"""Attempts for findings that another process explains."""
OTHERS, STEAL = 0.02, 0.005
"""CPU share of other processes, and steal, of a disturbed trial; below the limits of `isolation`."""


@dataclass(frozen=True, slots=True)
class CleanResult:
    """Result of a clean run's attempts."""

    attempts: int
    false_alarms: dict[str, str]
    """Check -> reason, of unexplained findings in every attempt: defects of the judge."""
    explained: dict[str, str]
    """Check -> reason, of findings in every attempt, explained by another process."""
    gone: tuple[str, ...]
    """Checks that failed earlier attempts only."""
    outcome: SetupResult
    """The last attempt."""

    @property
    def summary(self) -> str:
        """Cell of the table."""
        if self.false_alarms:
            return "false alarm: " + ", ".join(self.false_alarms)
        if self.explained:
            return "does not conform on this busy host: " + ", ".join(self.explained)
        text = "conforms"
        if self.gone:
            text += f" at attempt {self.attempts} (earlier, from this host: {', '.join(self.gone)})"
        return f"{text}, {bias_range(self.outcome.judgement.bias(MAIN_FIGURE), MAIN_FIGURE)}"


MAIN_FIGURE = "requests_per_s"
_known: list[tuple[Setup, CleanResult]] = []


def run_clean(setup: Setup) -> CleanResult:
    """Up to four trials of this set-up; entries with the same clean run share its trials."""
    known = next((result for done, result in _known if done == setup), None)
    if known is None:
        known = _attempt(setup)
        if not known.false_alarms:
            _known.append((setup, known))
    return known


def _attempt(setup: Setup) -> CleanResult:
    attempts: list[SetupResult] = []
    for seed, pause_s in enumerate((0.0, *PAUSES_S), start=1):
        time.sleep(pause_s)
        attempts.append(run_setup(setup, seed, kept=True))
        result = conclude(attempts)
        if not result.false_alarms and (not result.explained or len(attempts) >= PATIENCE):
            break
    return conclude(attempts)


def conclude(seen: list[SetupResult]) -> CleanResult:
    """The rule, over all attempts so far."""
    last = problems(seen[-1])
    lasting = {check: reason for check, reason in last.items() if all(check in problems(s) for s in seen)}
    explainable = set(BUSY) if all(disturbed(outcome) for outcome in seen) else set()
    return CleanResult(
        attempts=len(seen),
        false_alarms={check: reason for check, reason in lasting.items() if check not in explainable},
        explained={check: reason for check, reason in lasting.items() if check in explainable},
        gone=tuple(sorted({check for s in seen for check in problems(s)} - lasting.keys())),
        outcome=seen[-1],
    )


def problems(outcome: SetupResult) -> dict[str, str]:
    """Check -> reason, of findings that keep this trial from conforming."""
    return {finding.check: finding.reason for finding in outcome.judgement.not_conforming}


def disturbed(outcome: SetupResult) -> bool:
    """Whether another process used the trial's CPUs. On a single CPU client and server disturb each other."""
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
