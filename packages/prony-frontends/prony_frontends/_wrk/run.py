"""Runs wrk's and wrk2's command lines, from the arguments to the exit code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import IO

from pydantic import ValidationError

from prony import redaction
from prony.errors import EnvironmentFault, UsageError
from prony.evidence.engine import EngineReport, Histogram, Window
from prony.judge.histogram import HistogramError, decode
from prony.plan.load import ClosedLoad, Load, OpenLoad, WholeRun
from prony.plan.script import Script
from prony.plan.step import Step
from prony.plan.target import TlsOptions
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Workload
from prony.report.progress_state import SilentProgress
from prony_frontends._exports.wrk import CONNECT, READ, TIMEOUT, WRITE
from prony_frontends._wrk import layout
from prony_frontends._wrk.arguments import TOOL, USAGE, USAGE_2, WrkArguments, WrongUsage, parse
from prony_frontends.base import Context, Note, Refused, Translated
from prony_frontends.counted import CountedValues

FAILED = 1
"""wrk's exit code for any failure."""


class BeginLines(SilentProgress):
    """Prints wrk's first lines when the load begins."""

    def __init__(self, heading: str, stream: IO[str]) -> None:
        self._heading, self._stream = heading, stream

    def phase(self, name: str, expected_s: float | None) -> None:  # noqa: ARG002
        """Start of a phase."""
        if name == "window":
            self._stream.write(self._heading)
            self._stream.flush()


def translate(argv: Sequence[str], second: bool = False) -> Translated:
    """Translates the arguments of wrk or wrk2 into a load. Raises UsageError."""
    args = parse(argv, second)
    if not args.url:
        raise WrongUsage("wrk: no URL was given")
    return translated(args)


def translated(args: WrkArguments) -> Translated:
    """The load with the same connections, duration and requests. Raises UsageError for an invalid request."""
    script = None
    if args.script is not None:
        script = Script(file=str(args.script.absolute()), args=args.rest, url=args.url, threads=args.threads)
    try:
        step = Step.model_validate(
            {"path": _literal(args.path), "headers": {k: _literal(v) for k, v in args.headers.items()}}
        )
        workload = Workload(name=TOOL, title=f"GET {args.path}", steps=(step,))
    except ValidationError as fault:
        reason = str(fault.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(f"wrk: the request cannot be sent: {reason}") from fault
    timeout_ms = max(1, args.timeout_s * 1000)
    trial = TrialPlan(
        workload=workload,
        load=_load(args),
        measured=WholeRun(duration_s=args.duration_s),
        warm_up=fixed(0.0),
        request_timeout_ms=timeout_ms,
        connect_timeout_ms=timeout_ms,
        preflight=False,
        script=script,
        threads=args.threads,
        rate_groups=args.threads,
    )
    target = args.target.model_copy(update={"tls": TlsOptions(insecure=True)})
    notes = [
        Note("header_not_sent", f"the header '{text}' is left out, as by wrk (no space)")
        for text in args.dropped
    ]
    if "?" in args.url and "?" not in args.path:
        notes.append(Note("query_not_sent", "the query is left out, as by wrk: no path"))
    if args.open_connections != args.connections:
        notes.append(
            Note(
                "connections",
                f"as in wrk {args.connections} over {args.threads} threads are {args.open_connections}",
            )
        )
    return Translated(TOOL, target, trial, f"wrk {redaction.url(args.url)}", tuple(notes))


def _load(args: WrkArguments) -> Load:
    if args.rate_per_s is None:
        return ClosedLoad(users=args.open_connections)
    return OpenLoad(
        rate_per_s=args.rate_per_s,
        arrivals="poisson" if args.poisson else "constant",
        max_users=args.open_connections,
        connections=args.open_connections,
        at_cap="wait",
    )


def _literal(text: str) -> str:
    """The text with placeholders escaped."""
    return text.replace("${", "$${")


def run(argv: Sequence[str], context: Context, second: bool = False) -> int:
    """Runs wrk or wrk2, from the first line to the exit code."""
    try:
        args = parse(argv, second)
        made = translated(args) if args.url else None
    except WrongUsage as fault:
        if str(fault):
            print(fault, file=context.stderr)
        context.stdout.write(USAGE_2 if second else USAGE)
        return FAILED
    except Refused:
        raise
    except UsageError as fault:
        print(fault, file=context.stderr)
        return FAILED
    if args.version:
        context.stdout.write(f"wrk 4.1.0 [prony {version('prony')}]\n")
    if made is None:
        return FAILED
    if context.options.explain:
        return context.explained(made)
    heading = layout.begin(args.duration_s, redaction.url(args.url), args.threads, args.connections)
    # A script's output before the load is known only after it; a terminal shows the start at once.
    early = args.script is None or context.stdout.isatty()
    try:
        ran = context.measure(made, BeginLines(heading if early else "", context.stdout))
    except EnvironmentFault as fault:
        print(f"wrk: {fault}", file=context.stderr)
        return failed(str(fault))
    report = ran.report
    script = report.script
    if script is not None:
        context.stdout.write(script.printed_setup)
    if not early:
        context.stdout.write(heading)
    if script is not None:
        context.stdout.write(script.printed_run)
    context.stdout.write(layout.report(figures(report, ran.window), args.latency, second))
    if args.uncorrected:
        sent = CountedValues.of(_times_us(ran.window.service_time))
        context.stdout.write(
            layout.recorded(sent, "Uncorrected Latency (measured without taking delayed starts into account)")
        )
    if script is None:
        return context.end(ran)
    context.stdout.write(script.printed_done)
    if script.printed_left_out:
        print("wrk: the script printed more than 4 MiB; the rest was dropped", file=context.stderr)
    if script.error is not None:
        print(script.error, file=context.stderr)
    return context.end(ran, failed(script.error) if script.error is not None else 0)


def failed(reason: str) -> int:
    """The script's own exit code, else wrk's."""
    left = re.search(r"\bos\.exit\((-?\d+)\) ended the script", reason)
    return FAILED if left is None else int(left[1]) % 256


def _times_us(histogram: Histogram | None) -> list[tuple[float, float]]:
    """Times in µs with their counts. Raises EnvironmentFault for an unreadable histogram."""
    if histogram is None:
        return []
    try:
        times = decode(histogram)
    except HistogramError as fault:
        raise EnvironmentFault(f"the engine's histogram cannot be read: {fault}") from fault
    return [(ns / 1000, n) for ns, n in zip(times.middle_ns.tolist(), times.counts.tolist(), strict=True)]


def figures(report: EngineReport, window: Window) -> layout.WrkFigures:
    """wrk's figures from the engine's report."""
    totals = report.totals

    def errors(kinds: Sequence[str]) -> int:
        return sum(totals.errors.get(kind, 0) for kind in kinds)

    return layout.WrkFigures(
        # An open load counts from the intended send.
        latency_us=CountedValues.of(_times_us(window.latency or window.service_time)),
        rates_per_s=CountedValues.of(report.rates or ()),
        requests=totals.completed,
        elapsed_s=report.elapsed_ms / 1000,
        bytes_read=totals.bytes_received or 0,
        errors={
            "connect": errors(CONNECT),
            "read": errors(READ),
            "write": errors(WRITE),
            "timeout": errors(TIMEOUT),
        },
        bad_status=sum(count for code, count in totals.status.items() if int(code) > 399),
    )
