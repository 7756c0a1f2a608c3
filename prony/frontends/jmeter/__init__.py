"""`prony jmeter -n -t PLAN.jmx [flags]`: JMeter's command line without its GUI, and its test plans. Must not
offer load or judge.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from prony.errors import UsageError
from prony.evidence.engine import IntervalRow, Window
from prony.frontends.base import Context, FrontEnd, Ran, Translated
from prony.frontends.jmeter import jtl
from prony.frontends.jmeter.arguments import TOOL, USAGE, VERSION, JMeterArguments, parse
from prony.frontends.jmeter.jtl_xml import XmlLog
from prony.frontends.jmeter.listeners import RowsFile
from prony.frontends.jmeter.outline import outlines
from prony.frontends.jmeter.samples import samples
from prony.frontends.jmeter.summary import Count, Threads, line, moment
from prony.frontends.jmeter.thread_names import ThreadGroup, ThreadNames
from prony.frontends.jmeter.translate import JMeterPlan, plan
from prony.load.request_log import LoggedRequest, read_log
from prony.plan.workload import Workload
from prony.report.progress import SilentProgress
from prony.trial.stages import stage_log

EVERY_S = 30
"""JMeter's summariser.interval."""


class Summariser(SilentProgress):
    """A pair of lines at every half minute of the clock, as JMeter prints them."""

    def __init__(self, stream: IO[str], users: int, stops_on_error: bool = False) -> None:
        """`stops_on_error`: the first failed request ends the run, as Ctrl-C does."""
        self._stream = stream
        self._stops_on_error = stops_on_error
        self._users = users
        self._rows: list[IntervalRow] = []
        self._all: list[IntervalRow] = []
        self._next_s = (int(time.time()) // EVERY_S + 1) * EVERY_S

    def row(self, row: IntervalRow) -> None:
        """A second has passed."""
        self._rows.append(row)
        if time.time() >= self._next_s:
            self._next_s += EVERY_S
            self.say()
        if self._stops_on_error and row.errors:
            raise KeyboardInterrupt

    def say(self) -> None:
        """The rows since the last line, and all of them."""
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
    def said(self) -> bool:
        """Whether a line has been printed, so that the rest has one too."""
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
    """Requests without a response: not those whose response was another than expected."""
    return sum(count for kind, count in errors.items() if not kind.startswith("expect") and kind != "capture")


def total(ran: Ran) -> Count:
    """The whole test, setUp and tearDown groups too."""
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
    """One run, an error being a response that is wrong, or none."""
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
    """JMeter's arguments as a load. Raises UsageError."""
    return plan(parse(argv)).translated


def run(argv: Sequence[str], context: Context) -> int:
    """One run, from JMeter's first line to the exit code."""
    asked = parse(argv)
    if asked.help or asked.version:
        context.stdout.write(USAGE if asked.help else f"prony jmeter, after Apache JMeter {VERSION}\n")
        return 0
    made = plan(asked)
    if context.asked.explain:
        return context.explained(made.translated)
    return _run(asked, made, context)


def _run(asked: JMeterArguments, made: JMeterPlan, context: Context) -> int:
    out = context.stdout
    print("Creating summariser <summary>", file=out)
    print(f"Created the tree successfully using {asked.plan}", file=out)
    print(f"Starting standalone test {moment(time.time())}", file=out, flush=True)
    if made.delay_s:
        time.sleep(made.delay_s)
    summariser = Summariser(out, made.users, made.stops_on_error)
    files = _files(asked, made)
    ran = _logged(files, made, context, summariser) if files else context.measure(made.translated, summariser)
    if summariser.said:
        summariser.say()
    print(line(total(ran)), file=out)
    print(f"Tidying up ...    {moment(time.time())}", file=out)
    print("... end of run", file=out)
    return context.end(ran, 0)


Files = Sequence[tuple[RowsFile, bool]]
"""Each with whether what is in it goes first."""


def _files(asked: JMeterArguments, made: JMeterPlan) -> Files:
    """The file of -l and those of listeners, each once."""
    found = [(RowsFile(asked.log), asked.replace_log)] if asked.log is not None else []
    known = {asked.log.absolute()} if asked.log is not None else set()
    return [*found, *((file, False) for file in made.files if file.path.absolute() not in known)]


def _logged(files: Files, made: JMeterPlan, context: Context, progress: SilentProgress) -> Ran:
    """The run with a row for every request, which become JMeter's when it has ended."""
    servers_of: list[jtl.Servers] = []
    names_of: list[ThreadNames] = []

    def record_of(row: LoggedRequest) -> jtl.Record:
        return jtl.request_record(row, servers_of[-1].of(row), names_of[-1])

    with ExitStack() as stack:
        logs: list[tuple[RowsFile, jtl.Log]] = []
        for file, replaced in files:
            log: jtl.Log
            try:
                log = XmlLog(file, record_of) if file.xml else jtl.CsvLog(file, record_of, replaced)
            except UsageError as fault:
                if file in made.files:  # as JMeter, which goes on without it
                    print(f"prony: note: a listener's file is not written: {fault}", file=context.stderr)
                    continue
                raise
            stack.callback(log.close)
            logs.append((file, log))
        folder = Path(stack.enter_context(TemporaryDirectory(dir=_beside(logs), prefix=".jtl-")))
        rows = folder / "requests.csv"
        ran = context.measure(made.translated.logged(rows), progress)
        count, unplaced = 0, list[str]()
        for part, thread_groups, workload in _logs(rows, made):
            names_of.append(ThreadNames(thread_groups, read_log(part)))
            servers_of.append(jtl.Servers(made.translated.target.url, workload))
            outlined = outlines(workload, made.transactions)
            count += jtl.write(samples(read_log(part), outlined), logs, servers_of[-1], names_of[-1])
            unplaced += [name for outline in outlined.values() for name in outline.unplaced]
    cost = ran.report.log
    waited = f"; threads waited {cost.waited_s:.3g} s for it" if cost is not None and cost.waited_s else ""
    named = ", ".join(str(file.path) for file, _ in logs)
    if logs:
        print(f"prony: note: {named}: {count} requests{waited}", file=context.stderr)
    if unplaced:
        names = ", ".join(unplaced)
        print(
            f"prony: note: {named}: no rows of samplers that no request stands beside: {names}",
            file=context.stderr,
        )
    return ran


def _beside(logs: Sequence[tuple[RowsFile, jtl.Log]]) -> Path | None:
    """Where there is room for the log of requests; None: where the system has its temporary files."""
    return logs[0][0].path.parent if logs else None


def _logs(rows: Path, made: JMeterPlan) -> Iterator[tuple[Path, Sequence[ThreadGroup], Workload]]:
    """The logs of the setUp groups, the load and the tearDown groups, their threads and what they walk."""
    trial = made.translated.trial
    if trial.before is not None:
        yield stage_log(rows, "before"), made.before, trial.before.workload
    yield rows, made.thread_groups, trial.workload
    if trial.after is not None:
        yield stage_log(rows, "after"), made.after, trial.after.workload


FRONT_END = FrontEnd(
    name=TOOL,
    usage=USAGE,
    translate=translate,
    run=run,
    script_endings=(".jmx",),
    before_script=("-n", "-t"),
)
