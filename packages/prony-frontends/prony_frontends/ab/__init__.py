"""`prony ab [flags] URL`: ApacheBench's command line and report."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from prony import redaction
from prony.errors import EnvironmentFault, UsageError
from prony.evidence.engine import IntervalRow
from prony.report.progress_state import SilentProgress
from prony_frontends.ab import html, layout, logged
from prony_frontends.ab.arguments import TOOL, USAGE, AbArguments, ExitCodeOne, parse
from prony_frontends.ab.figures import AbFigures, AbTimes, figures, length_lost, times_of
from prony_frontends.ab.translate import RequestHead, server_name, translated
from prony_frontends.base import Context, FrontEnd, Ran, Refused, Translated, openssl_name
from prony_frontends.request_log import read_log

WRONG_USAGE = 22
"""ab's exit code for a bad command line."""
RESET, REFUSED, TIMED_OUT = 104, 111, 119
"""ab's exit codes, which are system error numbers (70007 modulo 256 for a timeout)."""
NO_NAME = 670_000
"""Offset that ab adds to resolver error numbers."""
CONNECT_S = 5.0
TOLERATED_CONNECTS = 10
"""ab aborts after more failed connections."""
QUIET_BELOW = 150
BARS = 10
LEAST_STEP = 100
MOST_KEPT = 1_000_000
"""Requests logged individually (about 150 MB in a temporary file); above, histograms are used."""


class Heartbeat(SilentProgress):
    """ab's progress line for every tenth of the requests; up to a second late."""

    def __init__(self, args: AbArguments, stream: IO[str]) -> None:
        self._every = max(args.requests // BARS, LEAST_STEP)
        self._stream = stream
        self._silent = args.quiet or args.requests <= QUIET_BELOW
        self._completed = 0
        self._next = self._every

    def row(self, row: IntervalRow) -> None:
        """Handles the row of a second."""
        self._completed += row.completed + row.failed
        self._told(self._completed)

    def _told(self, completed: int) -> None:
        while not self._silent and self._next <= completed:
            print(f"Completed {self._next} requests", file=self._stream, flush=True)
            self._next += self._every

    def ended(self, completed: int) -> None:
        """Prints the remaining lines, and the end."""
        self._told(completed)
        if not self._silent:
            print(f"Finished {completed} requests", file=self._stream, flush=True)

    @property
    def silent(self) -> bool:
        """Whether dots replace the lines."""
        return self._silent


def translate(argv: Sequence[str]) -> Translated:
    """Translates ab's arguments into a load. Raises UsageError."""
    return translated(parse(argv))


def run(argv: Sequence[str], context: Context) -> int:
    """Runs ab, from the banner to the exit code."""
    try:
        args = parse(argv)
    except Refused:
        raise
    except UsageError as fault:
        print(fault, file=context.stderr)
        return 1 if isinstance(fault, ExitCodeOne) else WRONG_USAGE
    if args.help or args.version:
        context.stdout.write(USAGE if args.help else layout.BANNER)
        return 0
    made = translated(args)
    if context.options.explain:
        return context.explained(made)
    heartbeat = Heartbeat(args, context.stderr)
    context.stdout.write(html.BANNER if args.html else layout.BANNER)
    _begin(args, heartbeat, context.stdout)
    with tempfile.TemporaryDirectory(prefix="prony-ab-") as folder:
        log = Path(folder) / "requests.csv" if _logs_all(args) else None
        try:
            ran = context.measure(made if log is None else made.logged(log), heartbeat)
        except EnvironmentFault as fault:
            failure = _unreachable(args)
            if failure is None:
                raise
            context.stdout.flush()
            print(f"{failure[0]}\nprony: {fault}", file=context.stderr)
            return failure[1]
        requests = logged.kept(read_log(log)) if log is not None else []
    totals = ran.report.totals
    results = figures(args, ran.window, totals)
    results = logged.with_lengths(results, requests, args.any_length, length_lost(totals))
    _log(args, ran, context.stdout)
    broken = _broken(args, ran, results)
    if broken is not None:
        sentence, code = broken
        print(sentence, file=context.stderr)
        if totals.completed:
            print(f"Total of {totals.completed} requests completed", file=context.stdout)
        return context.end(ran, code)
    heartbeat.ended(results.complete)
    if heartbeat.silent:
        print("..done", file=context.stdout)
    times = logged.times(requests) or times_of(ran.window, totals)
    _print(_report(args, ran, results, times), context.stdout)
    unwritten = _files(args, requests, times)
    if unwritten is not None:
        print(unwritten, file=context.stderr)
        return context.end(ran, 1)
    return context.end(ran, 1 if ran.interrupted else 0)


def _files(args: AbArguments, requests: list[logged.LoggedTimes], times: AbTimes | None) -> str | None:
    """Writes the files of -e and -g. Returns ab's message when one cannot be written."""
    files: list[tuple[str, Path, Iterable[str]]] = []
    if args.csv is not None and times is not None:
        files.append(("CSV", args.csv, layout.csv(times.total)))
    if args.gnuplot is not None:
        files.append(("gnuplot", args.gnuplot, logged.gnuplot(requests)))
    for what, path, lines in files:
        try:
            with path.open("w", encoding="utf-8") as file:
                _print(lines, file)
        except OSError as fault:
            return f"Cannot open {what} output file: {fault.strerror}"
    return None


def _logs_all(args: AbArguments) -> bool:
    """Whether each request is logged: as in ab, but above MOST_KEPT only for -g."""
    return args.gnuplot is not None or args.requests <= MOST_KEPT


def _begin(args: AbArguments, heartbeat: Heartbeat, out: IO[str]) -> None:
    if not args.html:
        through = f"[through {args.proxy}] " if args.proxy is not None else ""
        dots = "..." if heartbeat.silent else "\n"
        out.write(f"Benchmarking {args.target.host} {through}(be patient){dots}")
    if args.verbosity >= 2:
        target = args.target
        path = f"{target.url}{args.path}" if args.proxy is not None else args.path
        lines = [f"{args.method or 'GET'} {path} HTTP/1.0"]
        lines += RequestHead.of(args, target).lines
        head = redaction.text("\n".join(lines))
        out.write("INFO: {} header == \n---\n{}\n\n\n---\n".format(args.method or "GET", head))
    out.flush()


def _log(args: AbArguments, ran: Ran, out: IO[str]) -> None:
    """Output of -v: a response head, and the count per status."""
    totals = ran.report.totals
    if args.verbosity >= 2 and totals.first_head is not None:
        out.write(f"LOG: header received:\n{totals.first_head}")
    if args.verbosity >= 3:
        for code, count in sorted(totals.status.items()):
            out.write(f"LOG: Response code = {code} ({count} responses)\n")


def _broken(args: AbArguments, ran: Ran, found: AbFigures) -> tuple[str, int] | None:
    """ab's message and exit code where ab would have aborted without a report."""
    if ran.report.totals.errors.get("connect_refused", 0) and not args.carry_on:
        return f"apr_socket_recv: Connection refused ({REFUSED})", REFUSED
    if found.connect_failed > TOLERATED_CONNECTS:
        return "\nTest aborted after 10 failures\n\napr_socket_connect(): Connection refused (111)", REFUSED
    if ran.report.totals.errors.get("timeout", 0) and not args.carry_on:
        return "apr_pollset_poll: The timeout specified has expired (70007)", TIMED_OUT
    if found.receive_failed and not args.carry_on:
        return "apr_socket_recv: Connection reset by peer (104)", RESET
    return None


def _unreachable(args: AbArguments) -> tuple[str, int] | None:
    """ab's message and exit code for an unknown host or a refused connection; None otherwise."""
    host, port = args.target.host, args.target.port
    if args.proxy is not None:
        host, _, text = args.proxy.rpartition(":")
        port = int(text)
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except socket.gaierror as fault:
        number = NO_NAME - (fault.errno or 0)
        return f"apr_sockaddr_info_get() for {host}: {fault.strerror} ({number})", number % 256
    except ConnectionRefusedError:
        return f"apr_socket_recv: Connection refused ({REFUSED})", REFUSED
    except OSError:
        return None
    return None


def _report(args: AbArguments, ran: Ran, found: AbFigures, times: AbTimes | None) -> Iterable[str]:
    software = _header(ran.report.totals.first_head, "server")
    if args.html:
        yield from html.page(args, found, times, software)
        return
    yield from layout.head(args, found, software, tuple(_tls(args, ran)))
    yield from layout.counts(args, found)
    if times is None:
        return
    yield from layout.connection_times(args, times)
    if args.percentiles:
        yield from layout.percentiles(times.total)


def _header(head: str | None, wanted: str) -> str:
    """The value of a header in a response head; empty when missing."""
    for line in (head or "").splitlines()[1:]:
        name, _, value = line.partition(":")
        if name.strip().lower() == wanted:
            return value.strip()
    return ""


def _tls(args: AbArguments, ran: Ran) -> Iterable[str]:
    """The negotiated TLS parameters. The length of the server's key is unknown and printed as 0."""
    if not args.target.https or not ran.report.totals.tls_agreed:
        return
    agreed = ran.report.totals.tls_agreed[0]
    bits = 128 if "AES_128" in agreed.cipher_suite else 256
    yield f"SSL/TLS Protocol:       TLSv{agreed.version},{openssl_name(agreed.cipher_suite)},0,{bits}"
    name = server_name(args.target)
    if name is not None:
        yield f"TLS Server Name:        {name}"


def _print(lines: Iterable[str], out: IO[str]) -> None:
    for line in lines:
        out.write(line + "\n")


FRONT_END = FrontEnd(name=TOOL, usage=USAGE, translate=translate, run=run)
