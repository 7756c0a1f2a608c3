"""Files of -l and of listeners: opened before the run, and filled from the engine's log after it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from prony.errors import EnvironmentFault, UsageError
from prony.report.progress_state import SilentProgress
from prony.trial.preparation import stage_log
from prony_frontends.base import Context, Ran
from prony_frontends.jmeter import jtl
from prony_frontends.jmeter.arguments import JMeterArguments
from prony_frontends.jmeter.jtl_xml import XmlLog
from prony_frontends.jmeter.listeners import RowsFile
from prony_frontends.jmeter.phases import Phase
from prony_frontends.jmeter.samples import samples
from prony_frontends.jmeter.thread_names import ThreadNames
from prony_frontends.jmeter.translate import JMeterPlan
from prony_frontends.request_log import LoggedRequest, read_log

SILENT_S = 2.0
"""Longest silence on standard error while files are written."""


def measured(args: JMeterArguments, made: JMeterPlan, context: Context, progress: SilentProgress) -> Ran:
    """Runs the plan; with files, logged requests become JMeter's rows afterwards. Raises PronyError."""
    files = _files(args, made)
    if not files:
        return context.measure(made.translated, progress)
    with ExitStack() as stack:
        kept = _Rows(made, context.stderr)
        kept.open(files, context, stack)
        # In the system's temporary folder: next to the file there may be no space, as in /dev.
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="prony-jmeter-")))
        rows = folder / "requests.csv"
        try:
            ran = context.measure(made.translated.logged(rows), progress)
        except EnvironmentFault:
            kept.fill(rows)  # rows of setUp groups only, if it ended there
            raise
        kept.fill(rows, ran.report.totals.sent)
    cost = ran.report.log
    waited = f"; threads waited {cost.waited_s:.3g} s for it" if cost is not None and cost.waited_s else ""
    named = ", ".join(str(file.path) for file, _ in kept.logs)
    if kept.logs:
        print(f"prony: note: {named}: {kept.requests} requests{waited}", file=context.stderr)
    return ran


Files = Sequence[tuple[RowsFile, bool]]
"""Files, each with whether to replace its contents."""


def _files(args: JMeterArguments, made: JMeterPlan) -> Files:
    """The file of -l and those of listeners, without duplicates."""
    log_file = [(RowsFile(args.log), args.replace_log)] if args.log is not None else []
    log_path = {args.log.absolute()} if args.log is not None else set()
    return [*log_file, *((file, False) for file in made.files if file.path.absolute() not in log_path)]


@dataclass(slots=True)
class _Rows:
    """Open files, and counts of their rows."""

    made: JMeterPlan
    stderr: IO[str]
    logs: list[tuple[RowsFile, jtl.Log]] = field(default_factory=list)
    requests: int = 0
    _servers: jtl.Servers | None = None
    """Servers and names of the phase being written."""
    _names: ThreadNames | None = None

    def open(self, files: Files, context: Context, stack: ExitStack) -> None:
        """Opens the files while `stack` lives. Raises UsageError for an unwritable -l."""
        for file, replaced in files:
            log: jtl.Log
            try:
                log = XmlLog(file, self._record) if file.xml else jtl.CsvLog(file, self._record, replaced)
            except UsageError as fault:
                if file in self.made.files:  # JMeter continues without it, too
                    print(f"prony: note: a listener's file is not written: {fault}", file=context.stderr)
                    continue
                raise
            stack.callback(log.close)
            self.logs.append((file, log))

    def fill(self, rows: Path, requests: int = 0) -> None:
        """Writes the rows of all phases. `rows`: the engine's log of the load."""
        for log, phase in _logs(rows, self.made):
            number = requests if log == rows else 0
            read = self._counted("sorted", number, read_log(log))
            self._names = names = ThreadNames(phase.thread_groups, read)
            self._servers = servers = jtl.Servers(self.made.translated.target.url, phase.workload)
            read = self._counted("written", number, read_log(log))
            phase_samples = samples(read, phase.outlines)
            self.requests += jtl.write(phase_samples, self.logs, servers, names, phase.outlines)

    def _counted(self, done: str, requests: int, read: Iterable[LoggedRequest]) -> Iterator[LoggedRequest]:
        """Prints how far the files are. `done`: what happens to the rows."""
        told_s = time.monotonic()
        named = ", ".join(str(file.path) for file, _ in self.logs)
        for number, row in enumerate(read, 1):
            if number % 256 == 0 and (now_s := time.monotonic()) - told_s >= SILENT_S:
                told_s = now_s
                of = f" of {requests:,}" if requests >= number else ""
                print(f"prony: {named}: {number:,}{of} requests {done}", file=self.stderr, flush=True)
            yield row

    def _record(self, row: LoggedRequest) -> jtl.Record:
        """Columns of a sub-sample."""
        assert self._servers is not None
        assert self._names is not None
        return jtl.request_record(row, self._servers.of(row), self._names)


def _logs(rows: Path, made: JMeterPlan) -> Iterator[tuple[Path, Phase]]:
    """Logs of the setUp groups, the load and the tearDown groups."""
    phases = (
        (stage_log(rows, "before"), made.before),
        (rows, made.load),
        (stage_log(rows, "after"), made.after),
    )
    for log, phase in phases:
        if phase is not None and log.is_file():
            yield log, phase
