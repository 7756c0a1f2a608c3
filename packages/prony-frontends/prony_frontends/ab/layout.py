"""ab's text report, line by line."""

from __future__ import annotations

import math
from collections.abc import Iterator

import prony
from prony import redaction
from prony_frontends.ab.arguments import AbArguments
from prony_frontends.ab.figures import AbFigures, AbTimes, TimeDistribution

PERCENTILES = (50, 66, 75, 80, 90, 95, 98, 99, 100)
ORIGIN = (
    "The layout is that of ab; load, clock and judgement are Prony's",
    "(the whole judgement: prony results show latest)",
)
"""Replaces ab's two copyright lines, so that the number of lines is the same."""
BANNER = f"""\
This is ApacheBench, Version 2.3 <$Revision: Prony {prony.__version__} $>
{ORIGIN[0]}
{ORIGIN[1]}

"""


def head(args: AbArguments, figures: AbFigures, software: str, tls: tuple[str, ...]) -> Iterator[str]:
    """The section about server and document."""
    target = args.target
    yield ""
    yield ""
    yield f"Server Software:        {software}"
    yield f"Server Hostname:        {target.host}"
    yield f"Server Port:            {target.port}"
    yield from tls
    yield ""
    yield f"Document Path:          {redaction.name(args.path)}"
    yield f"Document Length:        {document(args, figures)}"
    yield ""


def document(args: AbArguments, figures: AbFigures) -> str:
    """The document's length as printed."""
    return "Variable" if args.any_length else f"{figures.document_bytes} bytes"


def counts(args: AbArguments, figures: AbFigures) -> Iterator[str]:
    """The section from concurrency to rates."""
    yield f"Concurrency Level:      {args.concurrency}"
    yield f"Time taken for tests:   {figures.seconds:.3f} seconds"
    yield f"Complete requests:      {figures.complete}"
    yield f"Failed requests:        {figures.failed}"
    if figures.failed:
        yield (
            f"   (Connect: {figures.connect_failed}, Receive: {figures.receive_failed}, "
            f"Length: {figures.length_failed}, Exceptions: {figures.exceptions})"
        )
    if figures.write_errors:
        yield f"Write errors:           {figures.write_errors}"
    if figures.other_status:
        yield f"Non-2xx responses:      {figures.other_status}"
    if args.keep_alive:
        yield f"Keep-Alive requests:    {figures.kept_alive}"
    yield f"Total transferred:      {figures.transferred_bytes} bytes"
    if args.body is not None:
        yield f"Total body sent:        {figures.sent_bytes}"
    yield f"HTML transferred:       {figures.body_bytes} bytes"
    if figures.complete:
        yield from _rates(args, figures)


def _rates(args: AbArguments, figures: AbFigures) -> Iterator[str]:
    each_ms = figures.seconds * 1000 / figures.complete
    kbytes = 1024 * figures.seconds
    yield f"Requests per second:    {figures.per_s:.2f} [#/sec] (mean)"
    yield f"Time per request:       {args.concurrency * each_ms:.3f} [ms] (mean)"
    yield f"Time per request:       {each_ms:.3f} [ms] (mean, across all concurrent requests)"
    yield f"Transfer rate:          {figures.transferred_bytes / kbytes:.2f} [Kbytes/sec] received"
    if args.body is not None:
        yield f"                        {figures.sent_bytes / kbytes:.2f} kb/s sent"
        both = figures.transferred_bytes + figures.sent_bytes
        yield f"                        {both / kbytes:.2f} kb/s total"


def rounded(ms: float) -> int:
    """Whole milliseconds, halves rounded up."""
    return math.floor(ms + 0.5)


def connection_times(args: AbArguments, times: AbTimes) -> Iterator[str]:
    """The table of times with ab's warnings."""
    rows = {
        "Connect": times.connect,
        "Processing": times.processing,
        "Waiting": times.waiting,
        "Total": times.total,
    }
    yield ""
    yield "Connection Times (ms)"
    if not args.confidence:
        yield "              min   avg   max"
        for name, spread in rows.items():
            yield (
                f"{name + ':':<12}{rounded(spread.least):5} {rounded(spread.mean):5}{rounded(spread.most):5}"
            )
        return
    yield "              min  mean[+/-sd] median   max"
    for name, spread in rows.items():
        yield (
            f"{name + ':':<12}{rounded(spread.least):5} {rounded(spread.mean):4} {spread.deviation:5.1f} "
            f"{rounded(spread.median):6} {rounded(spread.most):7}"
        )
    what = ("the initial connection time", "the processing time", "the waiting time", "the total time")
    for name, spread in zip(what, rows.values(), strict=True):
        yield from _sane(name, spread)


def _sane(what: str, spread: TimeDistribution) -> Iterator[str]:
    apart = abs(rounded(spread.mean) - rounded(spread.median))
    if apart > 2 * spread.deviation:
        yield f"ERROR: The median and mean for {what} are more than twice the standard"
        yield "       deviation apart. These results are NOT reliable."
    elif apart > spread.deviation:
        yield f"WARNING: The median and mean for {what} are not within a normal deviation"
        yield "        These results are probably not that reliable."


def percentiles(total: TimeDistribution) -> Iterator[str]:
    """The percentile table."""
    if total.count <= 1:
        return
    yield ""
    yield "Percentage of the requests served within a certain time (ms)"
    for share in PERCENTILES:
        if share == 100:
            yield f" 100%  {rounded(total.most):5} (longest request)"
        else:
            yield f"  {share}%  {rounded(total.at(int(total.count) * share // 100)):5}"


def csv(total: TimeDistribution) -> Iterator[str]:
    """Output of -e: each percentile in ms, with three decimals."""
    yield "Percentage served,Time in ms"
    for share in range(101):
        value = total.most if share == 100 else total.at(math.floor(0.5 + total.count * share / 100))
        yield f"{share},{(total.least if share == 0 else value):.3f}"
