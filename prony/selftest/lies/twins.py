"""Repeats an honest twin until it is acquitted, and says what remains. Must not know the lie it belongs to.

The rule. A finding that is gone in a repeat was this machine's, and is said. A finding that stays in every
attempt is a false accusation, with two exceptions: one of `BUSY`, when in every attempt the machine's own
readings show that somebody else had its CPUs; and `steady` when each time it could not tell, for then the
seconds differ too much here for a window of this length, which the finding says of itself.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from prony.judge.finding import Status
from prony.selftest.lies.model import Setup, Staged
from prony.selftest.lies.stage import stage

PAUSES_S = (1.0, 3.0, 6.0)
"""Before each repeat; whatever disturbed a twin may be gone then."""
BUSY = frozenset(
    {"isolation", "host", "client", "steady", "schedule", "samples", "stall", "think", "warm", "little"}
)
"""What a neighbour on the same CPUs really does to an honest trial. Errors, connections, contents, counts,
arrivals and ports are not among them: nobody's CPU time explains those. Little's law is: users who wait for a
client that has no CPU are no users of the server.
"""
PATIENCE = 4
"""So many attempts for a twin that nothing but a neighbour speaks against: one more can only acquit it."""
SAID_BY_ITSELF = frozenset({"isolation", "host"})
"""They name the neighbour and nothing else; one repeat is enough to see that it has not gone."""
OTHERS, STEAL = 0.02, 0.005
"""CPU of other processes, and steal, from which somebody else was there. Less than the limits of the check
`isolation`, as an effect may begin below the limit of its cause."""


@dataclass(frozen=True, slots=True)
class Acquittal:
    """What became of a twin."""

    attempts: int
    stayed: dict[str, str]
    """Check -> reason, of what stayed in every attempt and is no neighbour's doing: a fault of the judge."""
    forgiven: dict[str, str]
    """The same of what stayed, and is a neighbour's doing."""
    gone: tuple[str, ...]
    """Checks that accused an earlier attempt only."""

    @property
    def told(self) -> str:
        """For the table."""
        if self.stayed:
            return "accused by " + ", ".join(self.stayed)
        if self.forgiven:
            return "not valid on this busy machine: " + ", ".join(self.forgiven)
        if self.gone:
            return f"valid at attempt {self.attempts} (before that, this machine: {', '.join(self.gone)})"
        return "valid"


_acquitted: list[tuple[Setup, Acquittal]] = []


def acquit(setup: Setup) -> Acquittal:
    """Of this set-up, which is staged up to four times. Several entries have the same twin; it is acquitted
    once.
    """
    known = next((acquittal for twin, acquittal in _acquitted if twin == setup), None)
    if known is None:
        known = _attempt(setup)
        if not known.stayed:
            _acquitted.append((setup, known))
    return known


def _attempt(setup: Setup) -> Acquittal:
    seen: list[Staged] = []
    for seed, pause_s in enumerate((0.0, *PAUSES_S), start=1):
        time.sleep(pause_s)
        seen.append(stage(setup, seed))
        verdict = weigh(seen)
        named = len(seen) > 1 and verdict.forgiven.keys() <= SAID_BY_ITSELF
        if not verdict.stayed and (not verdict.forgiven or named or len(seen) >= PATIENCE):
            break
    return weigh(seen)


def weigh(seen: list[Staged]) -> Acquittal:
    """The rule, over all attempts so far."""
    last = troubles(seen[-1])
    every = {check: reason for check, reason in last.items() if all(check in troubles(s) for s in seen)}
    forgivable = set(BUSY) if all(others_at_work(staged) for staged in seen) else set()
    if all(staged.status("steady") is Status.UNKNOWN for staged in seen):
        forgivable.add("steady")
    return Acquittal(
        attempts=len(seen),
        stayed={check: reason for check, reason in every.items() if check not in forgivable},
        forgiven={check: reason for check, reason in every.items() if check in forgivable},
        gone=tuple(sorted({check for s in seen for check in troubles(s)} - every.keys())),
    )


def troubles(staged: Staged) -> dict[str, str]:
    """Check -> reason, of all that keeps this trial from being valid: accusations, and what is essential and
    could not be told.
    """
    return {
        f.check: f.reason
        for f in staged.judgement.findings
        if f.status in {Status.SUSPECT, Status.INVALID} or (f.essential and f.status is Status.UNKNOWN)
    }


def others_at_work(staged: Staged) -> bool:
    """Whether the machine's own readings show that somebody else used its CPUs; on a host with one CPU client
    and server are that to each other.
    """
    if staged.evidence.partition is not None and staged.evidence.partition.shared:
        return True
    if staged.status("host") in {Status.SUSPECT, Status.INVALID}:
        return True
    host, sides = staged.evidence.host_window, staged.evidence.partition
    if host is None:
        return False
    ours = set(sides.server) | set(sides.client) if sides is not None else set()
    others = (host.others_on_server_cpus or 0.0, host.others_on_client_cpus or 0.0)
    steal = max((cpu.steal for cpu in host.cpus if not ours or cpu.cpu in ours), default=0.0)
    return max(others) >= OTHERS or steal >= STEAL
