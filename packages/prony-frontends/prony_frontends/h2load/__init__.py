"""`prony h2load [flags] URI`: h2load's command line and report, over HTTP/2 and HTTP/1.1."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from prony.errors import EnvironmentFault
from prony.evidence.engine import EngineReport, IntervalRow
from prony.report.progress_state import SilentProgress
from prony_frontends.base import Context, FrontEnd, Translated, openssl_name
from prony_frontends.h2load import layout
from prony_frontends.h2load.arguments import TOOL, USAGE, H2loadArguments, WrongUsage, parse
from prony_frontends.h2load.figures import Rows, figures, times_of
from prony_frontends.h2load.translate import AGENT, logs_all, requests_of, translated
from prony_frontends.h2load.uris import Requested, requested
from prony_frontends.request_log import read_log

FAILED = 1
"""h2load's exit code for a bad command line; runs end with 0."""
TENTHS = 10


class Tenths(SilentProgress):
    """h2load's progress line per tenth of the requests (timed runs, -r: clients); up to a second late."""

    def __init__(self, whole: int, of_clients: bool, stream: IO[str] | None) -> None:
        """`stream` None: print at the end only, below lines that are not known earlier."""
        self._whole, self._of_clients, self._stream = whole, of_clients, stream
        self._what = "of clients started" if of_clients else "done"
        self._every = max(1, whole // TENTHS)
        self._seen = self._next = 0

    def row(self, row: IntervalRow) -> None:
        """Handles the row of a second."""
        self._seen += (row.connections_opened or 0) if self._of_clients else row.completed + row.failed
        if self._stream is not None:
            self._tell(self._seen, self._stream)

    def _tell(self, seen: int, stream: IO[str]) -> None:
        while self._next + self._every <= min(seen, self._whole):
            self._next += self._every
            print(f"progress: {self._next * 100 // self._whole}% {self._what}", file=stream, flush=True)

    def ended(self, seen: int, stream: IO[str]) -> None:
        """The rest."""
        self._tell(max(seen, self._seen), stream)


def translate(argv: Sequence[str]) -> Translated:
    """Translates h2load's arguments into a load. Raises UsageError."""
    args = parse(argv)
    return translated(args, requested(args))


def run(argv: Sequence[str], context: Context) -> int:
    """Runs h2load, from the first line to the exit code."""
    try:
        args = parse(argv)
        if args.help or args.version:
            context.stdout.write(USAGE if args.help else f"{AGENT}\n")
            return 0
        wanted = requested(args)
        if args.log is not None:
            args.log.open("a").close()
    except WrongUsage as fault:
        print(fault, file=context.stderr)
        return FAILED
    except OSError as fault:
        reason = f"reason = {fault.strerror}"
        print(f"--log-file: Could not open file {args.log}, {reason}", file=context.stderr)
        return FAILED
    made = translated(args, wanted)
    if context.options.explain:
        return context.explained(made)
    return _measured(args, wanted, made, context)


def _measured(args: H2loadArguments, wanted: Requested, made: Translated, context: Context) -> int:
    out, total = context.stdout, requests_of(args, wanted)
    _print(layout.begin(args, total), out)
    of_clients = total is None or args.rate is not None
    early = not (wanted.target.https or of_clients)
    if early:
        _print(_protocol(args, None), out)
    tenths = Tenths(
        args.clients if of_clients or total is None else total,
        of_clients,
        out if early or of_clients else None,
    )
    with tempfile.TemporaryDirectory(prefix="prony-h2load-") as folder:
        log = Path(folder) / "requests.csv" if logs_all(args) else None
        try:
            ran = context.measure(made if log is None else made.logged(log), tenths)
        except EnvironmentFault as fault:
            out.flush()
            if not context.options.exit_like_original:
                raise
            print(f"client could not connect to host\nprony: {fault}", file=context.stderr)
            return 0
        report = ran.report
        rows = Rows(args.clients, max(1, len(report.ready.threads)))
        lines = [] if log is None else [line for line in _kept(log, rows) if args.log is not None]
    warmed = total is None and args.warm_up_s > 0
    results = figures(report, ran.window, total, warmed)
    if of_clients:
        tenths.ended(report.totals.connections_opened or 0, out)
    if not early:
        _print(_protocol(args, report if wanted.target.https else None), out)
    if total is None:
        _print(layout.phases(args.threads), out)
    elif not of_clients:
        tenths.ended(results.answered + results.errored, out)
    times = times_of(report, ran.window)
    if log is not None:
        times = rows.times(connected=times.connect_s if args.per_client_s else None)
    over_s = args.duration_s if total is None and not ran.interrupted else results.measured_s
    _print(layout.report(results, times, over_s), out)
    if args.log is not None:
        with args.log.open("a", encoding="utf-8") as file:
            file.writelines(lines)
    return context.end(ran)


def _protocol(args: H2loadArguments, report: EngineReport | None) -> Iterator[str]:
    """Protocol of the connections, over TLS the negotiated one. The temporary key is unknown."""
    if report is None:
        yield f"Application protocol: {args.clear_protocol}"
    elif report.totals.tls_agreed:
        agreed = report.totals.tls_agreed[0]
        yield f"TLS Protocol: TLSv{agreed.version}"
        yield f"Cipher: {openssl_name(agreed.cipher_suite)}"
        yield f"Application protocol: {agreed.alpn or 'http/1.1'}"


def _kept(log: Path, rows: Rows) -> Iterator[str]:
    """The lines of --log-file: µs since 1970, status, duration in µs."""
    for row in read_log(log):
        rows.add(row)
        status = -1 if row.status is None else row.status
        yield f"{row.start_unix_ms * 1000}\t{status}\t{row.service_ns // 1000}\n"


def _print(lines: Iterator[str], out: IO[str]) -> None:
    for line in lines:
        out.write(line + "\n")
    out.flush()


FRONT_END = FrontEnd(name=TOOL, usage=USAGE, translate=translate, run=run)
