"""`prony jmeter -n -t PLAN.jmx [flags]`: JMeter's command line without its GUI, and its test plans."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from prony.errors import UsageError
from prony.evidence.engine import IntervalRow, Window
from prony.report.progress_state import SilentProgress
from prony_frontends.base import Context, FrontEnd, Ran, Translated
from prony_frontends.jmeter import row_files
from prony_frontends.jmeter.arguments import TOOL, USAGE, VERSION, JMeterArguments, parse
from prony_frontends.jmeter.summary import Count, Threads, line, moment
from prony_frontends.jmeter.translate import JMeterPlan, plan

EVERY_S = 30
"""JMeter's summariser.interval."""


class Summariser(SilentProgress):
    """Prints JMeter's pair of summary lines every half minute of clock time."""

    def __init__(self, stream: IO[str], users: int) -> None:
        self._stream = stream
        self._users = users
        self._rows: list[IntervalRow] = []
        self._all: list[IntervalRow] = []
        self._next_s = (int(time.time()) // EVERY_S + 1) * EVERY_S

    def row(self, row: IntervalRow) -> None:
        """Handles the row of a second."""
        self._rows.append(row)
        if time.time() >= self._next_s:
            self._next_s += EVERY_S
            self.print_line()

    def print_line(self) -> None:
        """Prints the rows since the last line, and the total."""
        if not any(row.completed + row.failed for row in self._rows):
            return
        active = self._rows[-1].users or 0
        started = max(max((row.users or 0) for row in [*self._all, *self._rows]), active)
        self._all += self._rows
        print(line(_of(self._rows), Threads(active, started, started - active)), file=self._stream)
        if len(self._all) > len(self._rows):
            print(line(_of(self._all)), file=self._stream)
        self._stream.flush()
        self._rows = []

    @property
    def has_printed(self) -> bool:
        """Whether a line has been printed; then the rest gets one, too."""
        return bool(self._all)


def _of(rows: Sequence[IntervalRow]) -> Count:
    requests = sum(row.completed for row in rows)
    weight = sum((row.mean_ns or 0.0) * row.completed for row in rows)
    errors = sum(sum(row.errors.values()) for row in rows)
    total = sum(row.completed + _lost(row.errors) for row in rows)
    return Count(
        requests=total,
        errors=min(errors, total),
        elapsed_s=sum(row.duration_ms for row in rows) / 1000,
        mean_ms=weight / requests / 1e6 if requests else 0.0,
        min_ms=min((row.p50_ns or 0 for row in rows if row.completed), default=0) / 1e6,
        max_ms=max((row.max_ns or 0 for row in rows), default=0) / 1e6,
    )


def _lost(errors: Mapping[str, int]) -> int:
    """Requests without a response, not counting unexpected responses."""
    return sum(count for kind, count in errors.items() if not kind.startswith("expect") and kind != "capture")


def total(ran: Ran) -> Count:
    """The whole test, with setUp and tearDown groups."""
    windows = [ran.window, *(stage.report.window for stage in ran.stages)]
    counts = [_whole(window) for window in windows if window is not None]
    requests = sum(count.requests for count in counts)
    return Count(
        requests=requests,
        errors=sum(count.errors for count in counts),
        elapsed_s=sum(count.elapsed_s for count in counts),
        mean_ms=sum(count.mean_ms * count.requests for count in counts) / requests if requests else 0.0,
        min_ms=min((count.min_ms for count in counts if count.requests), default=0.0),
        max_ms=max(count.max_ms for count in counts),
    )


def _whole(window: Window) -> Count:
    """Counts of a run; an error is a wrong or missing response."""
    wrong = sum(window.errors.values())
    times = window.response_time or window.service_time  # with connecting, as JMeter's elapsed time
    requests = window.completed + _lost(window.errors)
    return Count(
        requests=requests,
        errors=min(wrong, requests),
        elapsed_s=window.duration_s,
        mean_ms=0.0 if times is None else (times.mean_ns or 0.0) / 1e6,
        min_ms=0.0 if times is None else (times.min_ns or 0) / 1e6,
        max_ms=0.0 if times is None else (times.max_ns or 0) / 1e6,
    )


def translate(argv: Sequence[str]) -> Translated:
    """Translates JMeter's arguments into a load. Raises UsageError."""
    return plan(parse(argv)).translated


def run(argv: Sequence[str], context: Context) -> int:
    """Runs JMeter's command line, from the first line to the exit code."""
    args = parse(argv)
    if args.help or args.version:
        context.stdout.write(USAGE if args.help else f"prony jmeter, after Apache JMeter {VERSION}\n")
        return 0
    made = plan(args)
    if context.options.explain:
        return context.explained(made.translated)
    return _run(args, made, context)


def _run(args: JMeterArguments, made: JMeterPlan, context: Context) -> int:
    out = context.stdout
    if args.page is not None:
        _check_page(args.page, args.replace_log)
    print("Creating summariser <summary>", file=out)
    print(f"Created the tree successfully using {args.plan}", file=out)
    print(f"Starting standalone test {moment(time.time())}", file=out, flush=True)
    if made.delay_s:
        time.sleep(made.delay_s)
    summariser = Summariser(out, made.users)
    ran = row_files.measured(args, made, context, summariser)
    if summariser.has_printed:
        summariser.print_line()
    print(line(total(ran)), file=out)
    print(f"Tidying up ...    {moment(time.time())}", file=out)
    print("... end of run", file=out)
    if args.page is not None:
        ran.write_page(args.page)
        print(
            f"prony: note: {args.page} is Prony's page of the run, in place of JMeter's dashboard",
            file=context.stderr,
        )
    return context.end(ran, 0)


def _check_page(page: Path, replace: bool) -> None:
    """Checks the page's folder before the measurement. Raises UsageError."""
    if page.exists() and not replace:
        raise UsageError(f"jmeter: {page} already exists; name another folder with -o, or replace it with -f")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        writable = os.access(page.parent, os.W_OK)
    except OSError as fault:
        raise UsageError(f"jmeter: -o {page.parent}: {fault.strerror or fault}; name another") from fault
    if not writable:
        raise UsageError(f"jmeter: you may not write into {page.parent}; name another folder with -o")


FRONT_END = FrontEnd(
    name=TOOL, usage=USAGE, translate=translate, run=run, script_endings=(".jmx",), before_script=("-n", "-t")
)
