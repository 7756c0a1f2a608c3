"""Repeats a clean run until it is valid, and reports what remains. Must not know the entry it belongs to.

The rule: a finding that is gone in a repeat was caused by this host, and is reported. A finding present in
every attempt is a false alarm, with one exception: a check in `BUSY`, when the host's own readings show
another process on its CPUs in every attempt. `steady` and `samples` that are unknown accuse nobody: a window
of a few seconds shows neither a level nor, of few requests, a p99; both findings say so themselves.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from prony.judge.finding import Status
from prony.selftest.faults.model import Setup, SetupResult
from prony.selftest.faults.trial import run_setup

TOO_SHORT = ("steady", "samples")
"""Unknown in a window of seconds, which accuses nobody: too few rows to show a level, too few requests (or
requests that come in waves) for the interval of a p99.
"""
PAUSES_S = (1.0, 3.0, 6.0)
"""Before each repeat; the disturbance may be gone by then."""
BUSY = frozenset(
    {
        "isolation",
        "host",
        "network",
        "client",
        "steady",
        "schedule",
        "samples",
        "stall",
        "tail",
        "think",
        "warm",
        "little",
    }
)
"""Checks that another process on the same CPUs can trip. Errors, connections, content, counts, arrivals and
ports are not among them: missing CPU time explains none of those. Little's law is: users who wait for a
client without CPU are not in the system.
"""
PATIENCE = 4
"""Attempts for a clean run whose findings another process explains: one more can only help."""
SAID_BY_ITSELF = frozenset({"isolation", "host"})
"""They name the other process and nothing else; one repeat shows whether it is still there."""
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
    """Checks that fired in an earlier attempt only."""
    too_short: bool = False
    """Nothing was found, but the window was too short to be shown steady: the verdict is unknown for that."""

    @property
    def summary(self) -> str:
        """For the table."""
        if self.false_alarms:
            return "false alarm: " + ", ".join(self.false_alarms)
        if self.explained:
            return "not valid on this busy host: " + ", ".join(self.explained)
        found = "nothing found" if self.too_short else "valid"
        if self.gone:
            found += f" at attempt {self.attempts} (earlier, from this host: {', '.join(self.gone)})"
        return f"{found}; too short to be shown steady" if self.too_short else found


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
        verdict = conclude(seen)
        named = len(seen) > 1 and verdict.explained.keys() <= SAID_BY_ITSELF
        if not verdict.false_alarms and (not verdict.explained or named or len(seen) >= PATIENCE):
            break
    return conclude(seen)


def conclude(seen: list[SetupResult]) -> CleanResult:
    """The rule, over all attempts so far."""
    last = problems(seen[-1])
    every = {check: reason for check, reason in last.items() if all(check in problems(s) for s in seen)}
    explainable = set(BUSY) if all(disturbed(outcome) for outcome in seen) else set()
    ignored = {c for c in TOO_SHORT if all(outcome.status(c) is Status.UNKNOWN for outcome in seen)}
    every = {check: reason for check, reason in every.items() if check not in ignored}
    return CleanResult(
        attempts=len(seen),
        false_alarms={check: reason for check, reason in every.items() if check not in explainable},
        explained={check: reason for check, reason in every.items() if check in explainable},
        gone=tuple(sorted({check for s in seen for check in problems(s)} - every.keys() - ignored)),
        too_short="steady" in ignored,
    )


def problems(outcome: SetupResult) -> dict[str, str]:
    """Check -> reason, of every finding that keeps this trial from being valid."""
    return {
        f.check: f.reason
        for f in outcome.judgement.findings
        if f.status in {Status.SUSPECT, Status.INVALID} or (f.essential and f.status is Status.UNKNOWN)
    }


def disturbed(outcome: SetupResult) -> bool:
    """Whether the host's own readings show another process on its CPUs; on one CPU, client and server disturb
    each other.
    """
    if outcome.evidence.partition is not None and outcome.evidence.partition.shared:
        return True
    if outcome.status("host") in {Status.SUSPECT, Status.INVALID}:
        return True
    host, sides = outcome.evidence.host_window, outcome.evidence.partition
    if host is None:
        return False
    ours = set(sides.server) | set(sides.client) if sides is not None else set()
    others = (host.others_on_server_cpus or 0.0, host.others_on_client_cpus or 0.0)
    steal = max((cpu.steal for cpu in host.cpus if not ours or cpu.cpu in ours), default=0.0)
    return max(others) >= OTHERS or steal >= STEAL
