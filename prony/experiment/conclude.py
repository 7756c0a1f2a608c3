"""What follows from a trial the moment it ends: its judgement and its figures.

Must not store or print.
"""

from __future__ import annotations

from dataclasses import dataclass

from prony.evidence.trial import TrialRecord
from prony.judge.figures import figures
from prony.judge.finding import Finding, Judgement, Status
from prony.judge.limits import CheckLimits
from prony.judge.verdict import judge

BYTES_PER_MB = 1e6
ACTUATOR = {
    "jvm.memory.used": ("jvm_memory_used_mb", BYTES_PER_MB),
    "jvm.classes.loaded": ("jvm_classes_loaded", 1.0),
    "jvm.threads.live": ("jvm_threads_live", 1.0),
}
"""Experiment C's own figures: what the application reports -> the figure's name, and its divisor."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Judgement and figures of one trial."""

    judgement: Judgement
    figures: dict[str, float]
    printable_per_s: float | None
    """Requests per second when they may be printed."""

    @property
    def why(self) -> str:
        """What made the trial other than valid, as short as a line of progress needs it; else empty."""
        worst = self.judgement.worst
        return "" if worst is None else worst.reason.partition("; ")[0]


def conclude(record: TrialRecord, limits: CheckLimits | None = None) -> Conclusion:
    """Judge one trial, under these limits or the default ones, and derive its figures."""
    judgement = judge(record.evidence, limits)
    if record.failure is not None:
        judgement = _failed(judgement, record.failure)
    found = figures(record.evidence, limits)
    values = found.numbers()
    for reported, (name, divisor) in ACTUATOR.items():
        if reported in found.reported:
            values[name] = found.reported[reported] / divisor
    printable = judgement.verdict is not Status.INVALID and record.failure is None
    return Conclusion(judgement, values, found.requests_per_s if printable else None)


def _failed(judgement: Judgement, failure: str) -> Judgement:
    """A trial that ended early is invalid for that reason alone; what was not measured is left out. For a
    host that was lost no server is to blame.
    """
    lost = next((f for f in judgement.findings if f.check == "hosts" and f.status is Status.INVALID), None)
    cause = lost or Finding(
        check="identity",
        status=Status.INVALID,
        reason=failure,
        limit="the server that was started answers until it is told to stop",
        advice="look at the server's log, fix it, and repeat",
        essential=True,
    )
    known = tuple(
        f
        for f in judgement.findings
        if f.status is not Status.UNKNOWN and f.check not in {cause.check, "identity"}
    )
    return judgement.model_copy(update={"verdict": Status.INVALID, "findings": (cause, *known)})


def unjudged(end: BaseException) -> Judgement:
    """Of a trial whose judging failed or was interrupted: unknown, and it can be judged again."""
    finding = Finding(
        check="identity",
        status=Status.UNKNOWN,
        reason=f"it was not judged: {type(end).__name__}{f' ({end})' if str(end) else ''}",
        advice="judge the stored trial again: prony results rejudge",
        essential=True,
    )
    return Judgement(verdict=Status.UNKNOWN, findings=(finding,))
