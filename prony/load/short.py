"""Short unmeasured runs of the engine with checked responses: preparation, clean-up, conformance suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prony.errors import EnvironmentFault
from prony.evidence.engine import EngineReport, Window
from prony.load.base import StartEngine
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.plan import captured_values
from prony.plan.load import ClosedLoad, Connections
from prony.plan.script import Script
from prony.plan.step import Block, Entry, Step, calls
from prony.plan.target import TlsOptions
from prony.plan.workload import Workload

GRACE_S = 15.0
"""Allowance for the engine's start and for requests in flight at its end."""
ONE_EACH = Connections()
KINDS = {
    "expect_status": "another status",
    "expect_header": "another header",
    "expect_body": "another body",
    "capture": "nothing to capture",
    "expect_size": "a body of another size",
    "expect_duration": "a response that took too long",
    "expect_redirect": "a redirect to another host, or too many redirects",
    "timeout": "no response in time",
    "header_too_long": "a response whose head is too long",
    "tls": "no TLS connection",
    "tls_truncated": "connection closed without TLS's close_notify in a body without a length",
    "connect_timeout": "no connection in time",
    "connect_other": "no connection",
    "premature_close": "connection closed before a response",
    "protocol": "a response that is not HTTP",
    "read": "connection reset",
    "write": "connection closed while the request was sent",
    "connect_refused": "connection refused",
    "stream_reset": "stream reset by the server",
    "goaway": "a server that went away before it looked at the request",
}
"""The engine's kinds of error (docs/engine.md) as text; others are printed unchanged."""


BOUND_S, WALK_BOUND_S = 60.0, 600.0


def short_load(
    url: str,
    workload: Workload,
    *,
    users: int = 1,
    iterations: int = 1,
    tls: TlsOptions | None = None,
    connections: Connections = ONE_EACH,
) -> EngineLoad:
    return EngineLoad(
        url=url,
        tls=tls or TlsOptions(),
        workload=workload,
        load=ClosedLoad(users=users),
        connections=connections,
        cpus=(),
        iterations_per_user=iterations,
        after_s=BOUND_S,
        window="all",
    )


def run_short(load: EngineLoad) -> EngineReport:
    """Runs a load that ends by itself within its `after_s`. Raises EnvironmentFault if the engine fails."""
    return EngineRun(load).run_to_end((load.after_s or 0.0) + GRACE_S)


def by_one_user(load: EngineLoad, workload: Workload, bound_s: float, **changes: object) -> EngineLoad:
    """A walk of this workload by one user, with a load's kind of connections. `changes`: other fields."""
    once: dict[str, object] = {
        "load": ClosedLoad(users=1),
        "iterations_per_user": 1,
        "workload": workload,
        "connections": load.connections.model_copy(update={"pipeline": 1}),
        "cpus": (),
        "realtime": False,
        "parts": False,
        "script": None,
        "injected_faults": (),
    }
    return load.unmeasured(bound_s, **(once | changes))


def complaint(report: EngineReport, expected: int | None = None) -> str | None:
    """Wrong responses by step and kind, as a clause; None if all are right. `expected`: their number."""
    totals = report.totals
    if totals.failed:
        kinds = [
            f"{count} x {KINDS.get(kind, kind)}{_seen(kind, report)}" for kind, count in totals.errors.items()
        ]
        reasons = [reason for reason in totals.error_reasons.values() if reason]
        return f"{totals.failed} of {totals.sent} requests failed{_where(report.window)}: " + ", ".join(
            [*kinds, *reasons]
        )
    if expected is not None and totals.completed != expected:
        return f"{totals.completed} of {expected} requests completed in {report.elapsed_ms / 1000:.0f} s"
    return None


def in_words(kind: str | None, report: EngineReport) -> str:
    """A kind of error with the engine's reason; None: the run ended without one."""
    if kind is None:
        return f"the run ended early: {report.reason}"
    reason = report.totals.error_reasons.get(kind)
    return KINDS.get(kind, kind) + (f": {reason}" if reason else "")


@dataclass(frozen=True, slots=True)
class WalkedOnce:
    wrong: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    report: EngineReport | None = None


ENDED = "walk_ended"
"""Value set at the end of a walk with blocks, whose number of responses is not known."""


def walk_once(
    load: EngineLoad,
    entries: Sequence[Entry],
    *,
    values: Mapping[str, str] | None = None,
    script: Script | None = None,
    start: StartEngine = EngineRun,
) -> WalkedOnce:
    """A preparation or clean-up of the load's workload by one user. `script`: called by blocks."""
    if not entries:
        return WalkedOnce()
    flat = [entry for entry in entries if isinstance(entry, Step)]
    expected = sum(step.repeat for step in flat) if len(flat) == len(entries) else None
    end = () if expected is not None else (Block(set={ENDED: "1"}),)
    walked = (*entries, *end)
    once = load.workload.model_copy(
        update={
            "steps": walked,
            "scenarios": (),
            "loops": 1,
            "variables": captured_values.variables(entries, values or {}),
        }
    )
    called = script if any(True for _ in calls(walked)) else None
    try:
        walk = by_one_user(load, once, WALK_BOUND_S, report=captured_values.captured(walked), script=called)
        report = start(walk).run_to_end(WALK_BOUND_S + GRACE_S)
    except EnvironmentFault as fault:
        return WalkedOnce(str(fault))
    captured = {name: value for name, value in report.values.items() if name != ENDED}
    wrong = complaint(report, expected)
    if wrong is None and end and ENDED not in report.values:
        wrong = _not_ended(report)
    return WalkedOnce(wrong, captured, report)


def _not_ended(report: EngineReport) -> str:
    script = report.script
    if script is not None and script.error is not None:
        return script.error
    errors = [] if script is None else [name for name in script.counters if name.startswith("errors.")]
    why = f" ({', '.join(errors)})" if errors else ""
    return f"it did not finish{why}: {report.totals.completed} requests completed"


def _seen(kind: str, report: EngineReport) -> str:
    if kind != "expect_status":
        return ""
    return f" ({', '.join(f'{count} x {status}' for status, count in report.totals.status.items())} in all)"


def _where(window: Window | None) -> str:
    failed = [step.name for step in window.steps if step.failed] if window is not None else []
    return f" in {', '.join(failed)}" if failed else ""
