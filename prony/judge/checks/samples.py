"""samples: does the sample support each percentile, and is the window complete. Must not know the values."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, check
from prony.judge.finding import Finding, Status, no_window, unknown
from prony.judge.histogram import PERCENTILES, needed_samples
from prony.judge.window import measured
from prony.numbers import number, percent

CHECK = "samples"
SOURCE = "MLPerf LoadGen: binomial"
LOWEST_PERCENTILE = 50.0
PRINTED = (50.0, 90.0, 95.0, 99.0, 99.9)
COUNT_TOLERANCE = 0.01
"""The histogram's count may differ by this share from the counter of completed requests; it may also hold
failed ones.
"""


class SamplesLimits(DeclaredLimits):
    samples_confidence: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.99
    """With this confidence at least one sample lies beyond a printed percentile (MLPerf LoadGen)."""
    samples_required_percentile: Annotated[float, Field(gt=0.0, lt=100.0)] = 99.0
    """The highest percentile that must be printable; otherwise suspect."""


@check(SamplesLimits, order=170)
def samples(evidence: Evidence, limits: SamplesLimits) -> Finding:
    """Which percentiles the sample supports; suspect when the required one is not among them."""
    confidence = limits.samples_confidence
    required = limits.samples_required_percentile
    needed = needed_samples(required, confidence)
    limit = f"at least {number(needed)} samples for p{required:g} ({percent(confidence)} confidence)"
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    if window.service_time is None:
        return unknown(CHECK, "the engine reported no histogram", limit=limit, source=SOURCE)
    count = window.service_time.count
    silent = [p for p in (p for p in PRINTED if p in PERCENTILES) if count < needed_samples(p, confidence)]
    reason = f"{number(count)} samples"
    if silent:
        reason += ": not printed are " + ", ".join(
            f"p{p:g} (needs {number(needed_samples(p, confidence))})" for p in silent
        )
    else:
        reason += " support every percentile up to p99.9"
    status, advice = Status.VALID, ""
    least = window.completed * (1 - COUNT_TOLERANCE)
    most = (window.completed + window.failed) * (1 + COUNT_TOLERANCE)
    if count < needed_samples(LOWEST_PERCENTILE, confidence):
        status, advice = Status.INVALID, "measure longer: the sample supports no percentile at all"
    elif not least <= count <= most:
        status = Status.INVALID
        reason += f", but {number(window.completed)} requests completed"
        advice = "the histogram lost samples: a defect in the engine, please report it with the evidence"
    elif not window.complete or _ended_early(evidence):
        status = Status.SUSPECT
        reason += f"; the window was cut short after {number(window.duration_s)} s"
        advice = "let the window run to its planned end"
    elif count < needed:
        status, advice = Status.SUSPECT, "measure longer"
    return Finding(
        check=CHECK,
        status=status,
        value=float(count),
        limit=limit,
        reason=reason,
        advice=advice,
        source=SOURCE,
    )


def _ended_early(evidence: Evidence) -> bool:
    """A whole run ends when its protocol is complete; any other end was an interruption."""
    ended = evidence.engine.reason if evidence.engine is not None else ""
    return evidence.load.claim == "protocol" and ended in ("stopped", "signal", "stdin_closed")
