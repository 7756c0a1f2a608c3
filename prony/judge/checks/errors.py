"""errors: the share of requests that failed."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial

from prony.evidence.engine import Counters, Window
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Share, check
from prony.judge.effects import Biases, both, lost, together, wrong_requests
from prony.judge.finding import THROUGHPUT, Finding, no_window
from prony.judge.window import expectations_missed, measured
from prony.numbers import number, percent

CHECK = "errors"
SOURCE = "a figure with errors describes the errors"
FIRST_ERROR_STATUS = 400
CLIENT_KINDS = frozenset({"client", "answer_memory"})
"""Failures caused by the load generator: internal ones, and responses beyond its memory limit."""


class ErrorsLimits(DeclaredLimits):
    errors_share_max: Share = 0.01
    """Failed ÷ all requests above which the figure describes the errors."""


def failures(counters: Counters, content_declared: bool) -> tuple[int, int, dict[str, int]]:
    """(failed, all, by kind), undeclared a status from 400 too; a missed expectation is one request."""
    kinds = Counter({kind: count for kind, count in counters.errors.items() if count > 0})
    expected = expectations_missed(counters)
    everything = counters.completed + max(0, counters.failed - expected)
    if not content_declared and "expect_status" not in kinds:
        for status, count in counters.status.items():
            if status.isdigit() and int(status) >= FIRST_ERROR_STATUS and count > 0:
                kinds[f"status_{status}"] += count
    failed = max(sum(kinds.values()), counters.failed)
    return failed, max(everything, failed), dict(kinds)


@check(ErrorsLimits, order=10)
def errors(evidence: Evidence, limits: ErrorsLimits) -> Finding:
    limit = f"at most {percent(limits.errors_share_max)} of the requests failed"
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    finding = partial(Finding, check=CHECK, limit=limit, source=SOURCE)
    failed, everything, kinds = failures(window, evidence.load.content_declared)
    if everything == 0:
        return finding(
            code="none_completed",
            conforms=False,
            reason=f"no request completed in {number(window.duration_s)} s",
            advice="the server sent no complete response: see its log",
        )
    if failed == 0:
        reason = f"0 of {number(everything)} requests failed{_outside(evidence)}{_cookies(window)}"
        return finding(value=0.0, reason=reason)
    share = failed / everything
    named = ", ".join(
        f"{kind} {number(count)}" for kind, count in sorted(kinds.items(), key=lambda k: -k[1])[:5]
    )
    return finding(
        code="failed",
        conforms=share <= limits.errors_share_max,
        bias=_bias(evidence, window, failed, everything),
        value=share,
        reason=f"{percent(share)} of {number(everything)} requests failed"
        + (f": {named}" if named else "")
        + _own(kinds)
        + _reasons(window)
        + _cookies(window),
        advice=_advice(kinds),
    )


def _bias(evidence: Evidence, window: Window, failed: int, everything: int) -> Biases:
    """Without missed expectations, which `content` bounds. Failed users sent nothing while they waited."""
    missed = expectations_missed(window)
    silent = max(0, window.failed - missed)
    answered = max(0, failed - silent - (missed if evidence.load.content_declared else 0))
    parts = [wrong_requests(evidence, (silent + answered) / everything, answered / everything)]
    if silent and evidence.load.model == "closed":
        waited_s, users_s = window.lost_time_sum_s, window.user_time_s
        away_s = window.clipped_back_off_s or 0.0
        up = math.inf if waited_s is None or not users_s else lost((waited_s + away_s) / (users_s + away_s))
        parts.append(both(THROUGHPUT, up=up))
    return together(*parts)


def _own(kinds: dict[str, int]) -> str:
    own = sum(count for kind, count in kinds.items() if kind in CLIENT_KINDS)
    return f"; {number(own)} of them caused by the load generator" if own else ""


def _cookies(window: Counters) -> str:
    if not window.cookies_dropped:
        return ""
    return f"; {number(window.cookies_dropped)} cookies dropped (over 4 KiB, or over 180 or 64 KiB per user)"


def _reasons(window: Counters) -> str:
    return "".join(
        f"; {kind}: {reason}"
        for kind, reason in window.error_reasons.items()
        if window.errors.get(kind, 0) > 0
    )


def _outside(evidence: Evidence) -> str:
    if evidence.engine is None or evidence.engine.window is None:
        return ""
    outside = evidence.engine.totals.failed - evidence.engine.window.failed
    return f" ({number(outside)} outside the window)" if outside > 0 else ""


ADVICE = {
    "client": "the load generator failed, not the server: give it more memory or CPUs, or use fewer users",
    "answer_memory": "responses exceeded the client's memory limit: check the server's response sizes, or "
    "capture less",
    "address_unavailable": "the client ran out of ephemeral ports: see ports",
    "descriptors": "the client ran out of descriptors: see descriptors",
    "connect": "the server did not accept connections: check that it runs, and its listen backlog",
    "tls_truncated": "the server closed without TLS's close_notify: see its proxy or TLS settings",
    "tls": "handshake timeouts: ramp up more slowly or give the server more CPU; untrusted certificate: "
    "--ca FILE or --insecure; server without TLS: http:// in place of https://",
    "timeout": "use fewer users, or a longer request timeout if slow responses are acceptable",
    "status_": "see the server's log; if this status is correct for the workload, declare it in `expect`",
    "expect_": "compare a response with the workload's declaration",
    **dict.fromkeys(
        ("read", "premature_close", "write"),
        "the server closed connections during a request: see its log and limits",
    ),
}
"""By prefix of the most frequent kind."""


def _advice(kinds: dict[str, int]) -> str:
    most = max(kinds, key=lambda kind: kinds[kind], default="")
    return next((text for start, text in ADVICE.items() if most.startswith(start)), "see the server's log")
