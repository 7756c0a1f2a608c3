"""What follows from a trial the moment it ends: its judgement and its figures."""

from __future__ import annotations

from dataclasses import dataclass

from prony.evidence.trial import TrialRecord
from prony.judge.figures import figures
from prony.judge.finding import Finding, Judgement
from prony.judge.judging import judge
from prony.judge.limits import CheckLimits


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Judgement and figures of one trial."""

    judgement: Judgement
    figures: dict[str, float]


def conclude(record: TrialRecord, limits: CheckLimits | None = None) -> Conclusion:
    """Judge one trial, under these limits or the default ones, and derive its figures."""
    judgement = judge(record.evidence, limits)
    if record.failure is not None:
        judgement = _failed(judgement, record.failure)
    return Conclusion(judgement, figures(record.evidence, limits).numbers())


def _failed(judgement: Judgement, failure: str) -> Judgement:
    """A trial that ended early does not conform for that reason alone; what was not measured is left out. For
    a host that was lost no server is to blame.
    """
    hosts = judgement.finding("hosts")
    cause = (
        hosts
        if hosts is not None and not hosts.conforms
        else Finding(
            check="identity",
            code="ended_early",
            conforms=False,
            reason=failure,
            limit="the server that was started answers until it is told to stop",
            advice="look at the server's log, fix it, and repeat",
        )
    )
    known = tuple(
        f
        for f in judgement.findings
        if f.code not in {"unread", "no_window"} and f.check not in {cause.check, "identity"}
    )
    return judgement.model_copy(update={"conforms": False, "findings": (cause, *known)})


def unjudged(end: BaseException) -> Judgement:
    """Of a trial whose judging failed or was interrupted: it has no figure until it is judged again."""
    finding = Finding(
        check="identity",
        code="not_judged",
        conforms=False,
        reason=f"it was not judged: {type(end).__name__}{f' ({end})' if str(end) else ''}",
        advice="judge the stored trial again: prony results rejudge",
    )
    return Judgement(conforms=False, findings=(finding,))
