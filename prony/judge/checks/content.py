"""content: were the responses correct. Must not know HTTP beyond status and length."""

from __future__ import annotations

from prony.evidence.engine import Window
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share, always, check
from prony.judge.finding import Finding, Status, no_window, unknown
from prony.judge.window import expectations_missed, measured
from prony.numbers import number, percent

CHECK = "content"
SOURCE = "a fast wrong response is not a response"
HOW_TO_DECLARE = (
    "inspect a response and declare the correct one in the workload "
    "(expect: status, body_contains, body_bytes)"
)


class ContentLimits(DeclaredLimits):
    content_invalid_share: Share = 0.01
    """Share of wrong responses above which the figure describes them."""


@check(ContentLimits, order=180, essential=always)
def content(evidence: Evidence, limits: ContentLimits) -> Finding:
    """Declared: responses that missed an expectation. Undeclared: responses whose status or length differs
    from the preflight response.
    """
    declared = evidence.load.content_declared
    limit = (
        f"every response as declared (above {percent(limits.content_invalid_share)} wrong invalid)"
        if declared
        else "every response with the status and length of the preflight response"
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
            reason=f"preflight request of step {wrong_probe.step} failed: "
            + (wrong_probe.why_not or "response not as declared"),
            advice="fix the server or the declaration before measuring",
        )
    if window.completed == 0:
        return unknown(CHECK, "no responses", limit=limit, source=SOURCE)
    if not declared:
        return _undeclared(window, evidence, limit)
    told = _declared(window, limits, limit)
    if told.status is Status.VALID and evidence.load.length_from_preflight and evidence.probes:
        # A status alone does not notice a page that is cut short.
        length = _undeclared(window, evidence, limit)
        return told if length.status is Status.VALID else length
    return told


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
    reason = f"{number(wrong)} of {number(window.completed)} responses not as declared ({kinds})"
    return Finding(
        check=CHECK,
        status=status,
        value=share,
        limit=limit,
        source=SOURCE,
        reason=reason if wrong else f"all {number(window.completed)} responses as declared",
        advice="compare a response under load with the declaration: an overloaded server often sends 200"
        if wrong
        else "",
    )


def _undeclared(window: Window, evidence: Evidence, limit: str) -> Finding:
    if not evidence.probes and evidence.load.preflight is False:
        return _among_themselves(window)
    known = {(probe.status, probe.body_bytes) for probe in evidence.probes}
    counted = sum(response.count for response in window.answers) + window.answers_other
    if not known or counted == 0:
        reason = (
            "no preflight response to compare with" if not known else "responses were not counted by status"
        )
        return unknown(CHECK, reason, limit=limit, source=SOURCE, advice=HOW_TO_DECLARE)
    odd = [a for a in window.answers if (a.status, a.body_bytes) not in known]
    different = sum(response.count for response in odd) + window.answers_other
    share = different / counted
    failing = next((probe for probe in evidence.probes if not 200 <= probe.status < 300), None)
    if different:
        reason = f"{percent(share)} of the responses differ from the preflight response in status or length"
        if odd:
            most = max(odd, key=lambda response: response.count)
            reason += f" (most often {most.status} with {number(most.body_bytes)} bytes)"
    elif failing is not None:
        reason = f"the preflight response itself had status {failing.status}"
    else:
        reason = f"all {number(counted)} responses have the status and length of the preflight response"
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
    """No preflight response and nothing declared: every response against the most frequent one."""
    limit = "every response with the status and length of the most frequent one, below status 400"
    counted = sum(response.count for response in window.answers) + window.answers_other
    if counted == 0:
        return unknown(CHECK, "responses were not counted by status", limit=limit, source=SOURCE)
    usual = max(window.answers, key=lambda response: response.count)
    share = (counted - usual.count) / counted
    what = f"status {usual.status} with {number(usual.body_bytes)} bytes"
    failing = usual.status >= 400
    if share:
        reason = f"{percent(share)} of the responses differ from the most frequent one ({what})"
    else:
        reason = f"all {number(counted)} responses have {what}"
    return Finding(
        check=CHECK,
        status=Status.SUSPECT if share or failing else Status.VALID,
        value=share,
        limit=limit,
        source=SOURCE,
        reason=reason,
        advice=HOW_TO_DECLARE if share or failing else "",
    )
