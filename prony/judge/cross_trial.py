"""Findings across the trials of a comparison: slower clocks, different responses, different set-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

from prony.evidence.server import Probe
from prony.evidence.trial import Evidence
from prony.judge.checks.host import HostLimits, window_mhz
from prony.judge.effects import both, lost
from prony.judge.finding import CPU, THROUGHPUT, TIMES, Finding
from prony.judge.parts import gravest_first, joined
from prony.judge.setup import setup
from prony.numbers import number, percent

LENGTH_APART = 0.1
"""Difference of body lengths, as a share, above which they are different work."""
UNEQUAL = "the ratio compares different work: make the servers send the same response"
DECLARED = (
    "the ratio includes each server's own response: for equal work compare a request with the same response"
)


class JudgedTrial(NamedTuple):
    server: str
    block: int
    evidence: Evidence


def cross_trial(
    trials: Sequence[JudgedTrial], limits: HostLimits | None = None, declared: str = ""
) -> tuple[Finding, ...]:
    """Of a single workload and load. `declared`: why correct responses differ between servers."""
    by_server: dict[str, list[Evidence]] = {}
    for trial in trials:
        by_server.setdefault(trial.server, []).append(trial.evidence)
    findings = (clock(trials, limits), responses(trials, declared), setup(by_server))
    return tuple(finding for finding in findings if finding is not None)


def clock(trials: Sequence[JudgedTrial], limits: HostLimits | None = None) -> Finding | None:
    """Median CPU clocks compared; the bias is the slowest trial's. None below two readings."""
    allowed = (limits or HostLimits()).host_frequency_drop
    read = [(median(rows), trial) for trial in trials if (rows := window_mhz(trial.evidence))]
    if len(read) < 2:
        return None
    highest = max(mhz for mhz, _ in read)
    lowest, _ = min(read, key=lambda reading: reading[0])
    slow = [(mhz, trial) for mhz, trial in read if mhz < (1 - allowed) * highest]
    named = ", ".join(f"{t.server} in block {t.block + 1} {number(mhz)} MHz" for mhz, t in slow[:3])
    more = f" and {len(slow) - 3} more" if len(slow) > 3 else ""
    by = lost(1 - lowest / highest)
    return Finding(
        check="clock",
        code="slower" if slow else "ok",
        bias=both(THROUGHPUT, up=by) | both(TIMES + CPU, down=by) if slow else {},
        assumption="waits grew by no more than the clock fell" if slow else "",
        value=1 - lowest / highest,
        limit=f"median CPU clock of all trials within {percent(allowed)}",
        reason=f"CPU clock lower in {named}{more}; {number(highest)} MHz in others"
        if slow
        else f"CPU clock {number(lowest)} to {number(highest)} MHz",
        advice="fix the clock (governor performance, no turbo) or check cooling, then repeat" if slow else "",
        source="krun",
        outside=bool(slow),
    )


def responses(trials: Sequence[JudgedTrial], declared: str = "") -> Finding | None:
    """Preflight responses per step, but for content that varies within a server. None: a single server."""
    by_server: dict[str, list[Mapping[str, Probe]]] = {}
    for trial in trials:
        by_server.setdefault(trial.server, []).append({p.step: p for p in trial.evidence.probes})
    probed = {server: by_trial for server, by_trial in by_server.items() if any(by_trial)}
    if len(by_server) < 2:
        return None
    equal = "status and media type" if declared else "status, length and media type"
    finding = partial(
        Finding,
        check="responses",
        limit=f"same {equal} for all servers, lengths within {percent(LENGTH_APART)}",
        source="TechEmpower's rules: every implementation sends the same response",
    )
    same = "the servers' responses are the same work"
    if len(probed) < 2:
        return finding(code="unread", provided=same, reason="no preflight responses to compare")
    parts = []
    for step in dict.fromkeys(step for by_trial in probed.values() for probes in by_trial for step in probes):
        mine = {
            server: [probes[step] for probes in by_trial if step in probes]
            for server, by_trial in probed.items()
        }
        code, text = _step({server: probes for server, probes in mine.items() if probes}, bool(declared))
        fatal = code == "status" or (code == "length" and not declared)
        advice = DECLARED if declared and not fatal else UNEQUAL
        if code != "ok":
            provided, reason = "" if fatal else same, f"{step}: {text}"
            parts.append(
                finding(code=code, conforms=not fatal, provided=provided, reason=reason, advice=advice)
            )
    if not parts:
        return finding(
            reason="different content, as declared" if declared else "all servers sent the same response"
        )
    whole = joined(gravest_first(parts)[:3])
    reason = f"the servers' responses differ: {whole.reason}" + (
        f"; declared: {declared}" if declared else ""
    )
    return whole.model_copy(update={"reason": reason})


def _step(by_server: Mapping[str, Sequence[Probe]], declared: bool) -> tuple[str, str]:
    if len(by_server) < 2:
        return "ok", ""
    status = {server: _one({probe.status for probe in probes}) for server, probes in by_server.items()}
    if _differ(status):
        return "status", _values(status, "status {}")
    length = {server: median(probe.body_bytes for probe in probes) for server, probes in by_server.items()}
    shortest, longest = min(length.values()), max(length.values())
    if longest - shortest > LENGTH_APART * longest:
        return "length", _values({s: number(v) for s, v in length.items()}, "{} bytes")
    media = {server: _one({_media(probe) for probe in probes}) for server, probes in by_server.items()}
    if _differ(media):
        return "media_type", _values(media, "{}")
    body = {server: _one({probe.body_digest for probe in probes}) for server, probes in by_server.items()}
    if _differ(body) and not declared:
        return "content", f"bodies of {number(shortest)} to {number(longest)} bytes differ in content"
    return "ok", ""


def _one(values: set[str | None] | set[int]) -> str | None:
    return str(next(iter(values))) if len(values) == 1 and None not in values else None


def _differ(by_server: Mapping[str, str | None]) -> bool:
    return len({value for value in by_server.values() if value is not None}) > 1


def _values(by_server: Mapping[str, str | None], words: str) -> str:
    return ", ".join(f"{s} {words.format(v)}" for s, v in by_server.items() if v is not None)


def _media(probe: Probe) -> str | None:
    return None if probe.content_type is None else probe.content_type.partition(";")[0].strip().lower()
