"""samples: are there enough requests for each percentile, and is the window complete."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from prony.evidence.engine import REQUEST_FAILED
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding, no_window, unread
from prony.judge.percentiles import CONFIDENCE, MARGIN, Times, useful_samples
from prony.judge.times import NAMED, headline_times
from prony.judge.window import measured
from prony.numbers import number, percent

CHECK = "samples"
SOURCE = "order statistics: Hahn & Meeker 1991, section 5.2"
COUNT_TOLERANCE = 0.01
"""Tolerance of the histogram's count, between completed and completed + failed requests."""

CUT_SHORT = ("stopped", REQUEST_FAILED, "signal", "stdin_closed")
"""The engine's reasons for the early end of a protocol."""

SECONDS_DIFFER = 2.0
"""Requests ÷ effective sample from which differing seconds are the cause: the small-sample factor alone is
1.3 in a window of 10 s (`clustering.few`).
"""


class SamplesLimits(DeclaredLimits):
    samples_confidence: Annotated[float, Field(gt=0.0, lt=1.0)] = CONFIDENCE
    """Confidence of percentile intervals; a percentile needs half of its tail above the upper end."""
    samples_required_percentile: Annotated[float, Field(gt=0.0, lt=100.0)] = 99.0
    """Percentile for which the advice gives the requests needed."""


@check(SamplesLimits, order=170)
def samples(evidence: Evidence, limits: SamplesLimits) -> Finding:
    """Percentiles that the effective sample does not bound; with lost samples the trial does not conform."""
    confidence = limits.samples_confidence
    required = limits.samples_required_percentile
    needed = useful_samples(required, confidence)
    limit = (
        f"at least {number(needed)} independent requests for p{required:g} ({percent(confidence)} interval)"
    )
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    if window.service_time is None:
        reason, rests_on = "the engine reported no histogram", "the times would agree"
        return unread(CHECK, reason, provided=rests_on, limit=limit, source=SOURCE)
    times = headline_times(evidence)
    count = 0 if times is None else times.count
    silent = [p for p in NAMED.values() if times is None or not times.supports(p, confidence)]
    worth = 0 if times is None else times.worth(required)
    reason = f"{number(count)} requests"
    if worth < count:
        reason += f", equivalent to {number(worth)} independent ones for p{required:g}"
    if worth * SECONDS_DIFFER < count:
        reason += " as the seconds differ by more than chance"
    if silent:
        reason += "; too few for " + ", ".join(_needs(p, confidence) for p in silent)
    wide = [] if times is None else _wide(times, confidence)
    if wide:
        reason += f"; no useful upper bound for {', '.join(wide)}: quote the interval, or measure longer"
    if not silent and not wide:
        reason += " support every percentile up to p99.9"
    code, conforms, provided, advice = "ok", True, "", ""
    least = window.completed * (1 - COUNT_TOLERANCE)
    most = (window.completed + window.failed) * (1 + COUNT_TOLERANCE)
    if not least <= window.service_time.count <= most:
        code, conforms = "samples_lost", False
        reason += (
            f"; the histogram has {number(window.service_time.count)} samples, but "
            f"{number(window.completed)} requests completed"
        )
        advice = "the histogram lost samples: a defect in the engine, report it with the evidence"
    elif not window.complete or _ended_early(evidence):
        code, provided = "cut_short", "the rest of the window would have been the same"
        reason += f"; the window was cut short after {number(window.duration_s)} s"
        advice = "let the window run to its planned end"
    elif worth < needed:
        code = "few"
        times_more = MARGIN * needed / max(worth, 1)
        advice = f"measure longer: {times_more:.1f} times as many requests should support p{required:g}"
    return Finding(
        check=CHECK,
        code=code,
        conforms=conforms,
        provided=provided,
        value=float(count),
        limit=limit,
        reason=reason,
        advice=advice,
        source=SOURCE,
    )


def _needs(percentile: float, confidence: float) -> str:
    return f"p{percentile:g} (needs {number(useful_samples(percentile, confidence))})"


def _wide(times: Times, confidence: float) -> list[str]:
    return [
        f"p{p:g} (needs {number(needed)} independent ones, has {number(worth)})"
        for p in NAMED.values()
        if times.supports(p, confidence)
        and (worth := times.worth(p)) < (needed := useful_samples(p, confidence))
    ]


def _ended_early(evidence: Evidence) -> bool:
    ended = evidence.engine.reason if evidence.engine is not None else ""
    return evidence.load.claim == "protocol" and ended in CUT_SHORT
