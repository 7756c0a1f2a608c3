"""content: were the responses correct."""

from __future__ import annotations

from prony.evidence.engine import Window
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share, check
from prony.judge.checks.errors import FIRST_ERROR_STATUS
from prony.judge.effects import wrong_requests
from prony.judge.finding import Finding, no_window, unread
from prony.judge.parts import joined
from prony.judge.window import expectations_missed, measured
from prony.numbers import number, percent

CHECK = "content"
SOURCE = "a fast wrong response is not a response"
HOW_TO_DECLARE = (
    "inspect a response and declare it in the workload (expect: status, body_contains, body_bytes)"
)


SAMPLES_NEEDED = 10
"""Sampled bodies of a step from which others than the preflight's are reported."""
OTHER_SHARE_MAX = 0.5
"""Other bodies ÷ sampled bodies above which the body varies by design (a date, an id)."""


class ContentLimits(DeclaredLimits):
    content_share_max: Share = 0.01
    """Wrong ÷ all responses above which the figure is that of wrong responses."""


@check(ContentLimits, order=180)
def content(evidence: Evidence, limits: ContentLimits) -> Finding:
    declared = evidence.load.content_declared
    limit = (
        f"at most {percent(limits.content_share_max)} of the responses not as declared"
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
            code="preflight",
            conforms=False,
            limit=limit,
            source=SOURCE,
            reason=f"preflight request of step {wrong_probe.step} failed: "
            + (wrong_probe.why_not or "response not as declared"),
            advice="fix the server or the declaration before measuring",
        )
    if not declared or not window.completed:
        parts = [_alike(window, evidence, limit)]
    else:
        parts = [_declared(window, evidence, limits, limit)]
        if evidence.load.length_from_preflight and evidence.probes:
            # A status alone does not reveal a truncated page.
            parts.append(_alike(window, evidence, limit))
    if (other := _other_bodies(window, evidence, limit)) is not None:
        parts.append(other)
    return joined(parts) if len(parts) > 1 else parts[0]


def _declared(window: Window, evidence: Evidence, limits: ContentLimits, limit: str) -> Finding:
    missed = expectations_missed(window)
    share = missed / window.completed
    kinds = ", ".join(
        f"{k} {number(v)}" for k, v in sorted(window.errors.items()) if k.startswith("expect_") and v
    )
    return Finding(
        check=CHECK,
        code="wrong_responses" if missed else "ok",
        conforms=share <= limits.content_share_max,
        bias=wrong_requests(evidence, share, share),
        value=share,
        limit=limit,
        source=SOURCE,
        reason=f"{number(missed)} of {number(window.completed)} responses not as declared: {kinds}"
        if missed
        else f"all {number(window.completed)} responses as declared",
        advice="compare a response under load with the declaration: overloaded servers often send 200"
        if missed
        else "",
    )


def _other_bodies(window: Window, evidence: Evidence, limit: str) -> Finding | None:
    """The step with most sampled bodies other than its preflight response's. A body that changes (a date, an
    identifier) is none of them: it has neither the preflight's in most samples nor one other in all. A
    declared body may have changed once, as a list of metrics does with the first request.
    """
    finding: list[tuple[float, str]] = []
    if not evidence.load.constant or (evidence.engine is not None and evidence.engine.script is not None):
        return None
    body_declared = evidence.load.content_declared and not evidence.load.length_from_preflight
    for step in dict.fromkeys(body.step for body in window.bodies):
        before = {probe.body_sha256 for probe in evidence.probes if probe.step == step}
        bodies = [body for body in window.bodies if body.step == step]
        sampled = sum(body.count for body in bodies)
        other = sum(body.count for body in bodies if body.sha256 not in before)
        alone = len(bodies) == 1 and bodies[0].sha256 is not None and not body_declared
        if sampled < SAMPLES_NEEDED or not before or None in before:
            continue
        if alone or other <= OTHER_SHARE_MAX * sampled:
            share = other / sampled
            text = (
                f"{percent(share)} of {number(sampled)} sampled bodies of {step} differ from the preflight's"
            )
            finding.append((share, text))
    share, reason = max(finding, default=(0.0, ""))
    if not share:
        return None
    return Finding(
        check=CHECK,
        code="other_body",
        provided="the deviating bodies were right",
        value=share,
        limit=limit,
        source=SOURCE,
        reason=reason,
        advice="compare a response under load with one before it; declare the body (expect: body_contains)",
    )


def _alike(window: Window, evidence: Evidence, limit: str) -> Finding:
    """Responses compared with the preflight ones; without a preflight, with the most frequent response."""
    expected = {(probe.status, probe.body_bytes) for probe in evidence.probes}
    failing = next((probe.status for probe in evidence.probes if not 200 <= probe.status < 300), None)
    of = "the preflight response"
    if not expected and evidence.load.preflight is False and window.answers:
        usual = max(window.answers, key=lambda response: response.count)
        expected, of = {(usual.status, usual.body_bytes)}, "the most frequent response"
        failing = usual.status if usual.status >= FIRST_ERROR_STATUS else None
        limit = f"every response with the status and length of {of}, below status {FIRST_ERROR_STATUS}"
    counted = sum(response.count for response in window.answers) + window.answers_other
    if not expected or counted == 0 or window.completed == 0:
        return unread(
            CHECK,
            "responses were not counted by status" if expected or counted == 0 else "no preflight response",
            provided="the responses were right",
            limit=limit,
            source=SOURCE,
            advice=HOW_TO_DECLARE,
        )
    odd = [a for a in window.answers if (a.status, a.body_bytes) not in expected]
    different = sum(response.count for response in odd) + window.answers_other
    code, provided, advice = "ok", "", ""
    reason = f"all {number(counted)} responses have the status and length of {of}"
    if different:
        code, provided, advice = "differ", "the deviating responses were right", HOW_TO_DECLARE
        reason = f"{percent(different / counted)} of the responses differ from {of} in status or length"
        if odd:
            most = max(odd, key=lambda response: response.count)
            reason += f": mostly {most.status} with {number(most.body_bytes)} bytes"
    elif failing is not None:
        code, advice = "status", HOW_TO_DECLARE
        reason, provided = f"status {failing} in {of}", f"status {failing} was the right response"
    return Finding(
        check=CHECK,
        code=code,
        provided=provided,
        value=different / counted,
        limit=limit,
        source=SOURCE,
        reason=reason,
        advice=advice,
    )
