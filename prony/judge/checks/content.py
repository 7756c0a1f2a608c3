"""content: were the answers right answers. Must not know HTTP beyond status and length."""

from __future__ import annotations

from prony.evidence.engine import Window
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share, always, check
from prony.judge.checks.errors import expectations_missed
from prony.judge.finding import Finding, Status
from prony.judge.words import measured, no_window, number, percent, unknown

CHECK = "content"
SOURCE = "a fast wrong answer is not an answer"
HOW_TO_DECLARE = (
    "compare an answer by hand; declare what is right in the workload "
    "(expect: status, body_contains, body_bytes)"
)


class ContentLimits(DeclaredLimits):
    content_invalid_share: Share = 0.01
    """Share of answers that break the declaration from which the figure describes wrong answers."""


@check(ContentLimits, order=180, essential=always)
def content(evidence: Evidence, limits: ContentLimits) -> Finding:
    """Declared: answers that missed the declaration. Undeclared: answers unlike the probe's in status or
    length."""
    declared = evidence.load.content_declared
    limit = (
        f"every answer as declared (more than {percent(limits.content_invalid_share)} wrong invalid)"
        if declared
        else "status and length of every answer as in the probe's"
    )
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    wrong_probe = next((p for p in evidence.probes if not p.meets_expectation), None)
    if wrong_probe is not None:
        return Finding(
            check=CHECK,
            status=Status.INVALID,
            limit=limit,
            source=SOURCE,
            reason=f"before the load, step {wrong_probe.step} was answered wrongly: "
            + (wrong_probe.why_not or "not as declared"),
            advice="mend the server or the declaration before measuring",
        )
    if window.completed == 0:
        return unknown(CHECK, "nothing was answered", limit=limit, source=SOURCE)
    return _declared(window, limits, limit) if declared else _undeclared(window, evidence, limit)


def _declared(window: Window, limits: ContentLimits, limit: str) -> Finding:
    wrong = expectations_missed(window)
    share = wrong / window.completed
    status = Status.VALID
    if share > limits.content_invalid_share:
        status = Status.INVALID
    elif wrong:
        status = Status.SUSPECT
    kinds = ", ".join(
        f"{k} {number(v)}" for k, v in sorted(window.errors.items()) if k.startswith("expect_") and v
    )
    reason = f"{number(wrong)} of {number(window.completed)} answers were not as declared ({kinds})"
    return Finding(
        check=CHECK,
        status=status,
        value=share,
        limit=limit,
        source=SOURCE,
        reason=reason if wrong else f"all {number(window.completed)} answers as declared",
        advice="compare an answer under load with the declaration: overload often looks like 200"
        if wrong
        else "",
    )


def _undeclared(window: Window, evidence: Evidence, limit: str) -> Finding:
    if not evidence.probes and evidence.load.asked_first is False:
        return _among_themselves(window)
    known = {(probe.status, probe.body_bytes) for probe in evidence.probes}
    counted = sum(answer.count for answer in window.answers) + window.answers_other
    if not known or counted == 0:
        reason = "no probe to compare with" if not known else "answers were not told apart"
        return unknown(CHECK, reason, limit=limit, source=SOURCE, advice=HOW_TO_DECLARE)
    odd = [a for a in window.answers if (a.status, a.body_bytes) not in known]
    different = sum(answer.count for answer in odd) + window.answers_other
    share = different / counted
    failing = next((probe for probe in evidence.probes if not 200 <= probe.status < 300), None)
    if different:
        reason = f"{percent(share)} of the answers differ from the probe's in status or length"
        if odd:
            most = max(odd, key=lambda answer: answer.count)
            reason += f" (most often {most.status} with {number(most.body_bytes)} bytes)"
    elif failing is not None:
        reason = f"the probe itself was answered with status {failing.status}"
    else:
        reason = f"all {number(counted)} answers have the probe's status and length"
    suspect = bool(different) or failing is not None
    return Finding(
        check=CHECK,
        status=Status.SUSPECT if suspect else Status.VALID,
        value=share,
        limit=limit,
        source=SOURCE,
        reason=reason,
        advice=HOW_TO_DECLARE if suspect else "",
    )


def _among_themselves(window: Window) -> Finding:
    """Nobody asked before the load and nobody said what is right: every answer against the most frequent."""
    limit = "status and length of every answer as in the most frequent one, which is no error"
    counted = sum(answer.count for answer in window.answers) + window.answers_other
    if counted == 0:
        return unknown(CHECK, "answers were not told apart", limit=limit, source=SOURCE)
    usual = max(window.answers, key=lambda answer: answer.count)
    share = (counted - usual.count) / counted
    what = f"status {usual.status} with {number(usual.body_bytes)} bytes"
    failing = usual.status >= 400
    if share:
        reason = (
            f"{percent(share)} of the answers differ in status or length from the most frequent one ({what})"
        )
    else:
        reason = f"all {number(counted)} answers have {what}"
    return Finding(
        check=CHECK,
        status=Status.SUSPECT if share or failing else Status.VALID,
        value=share,
        limit=limit,
        source=SOURCE,
        reason=reason,
        advice=HOW_TO_DECLARE if share or failing else "",
    )
