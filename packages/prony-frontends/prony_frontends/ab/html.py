"""ab's HTML report (-w)."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import prony
from prony import redaction
from prony_frontends.ab.arguments import AbArguments
from prony_frontends.ab.figures import AbFigures, AbTimes, TimeDistribution
from prony_frontends.ab.layout import ORIGIN, document, rounded

BANNER = f"""\
<p>
 This is ApacheBench, Version 2.3 <i>&lt;$Revision: Prony {prony.__version__} $&gt;</i><br>
 {ORIGIN[0]}<br>
 {ORIGIN[1]}<br>
</p>
<p>
"""
CELL = "bgcolor=white"
"""ab's default attributes of a cell (-z)."""


def page(args: AbArguments, figures: AbFigures, times: AbTimes | None, software: str) -> Iterator[str]:
    """All rows, with text from the server escaped."""
    cell, row = args.cell or CELL, args.row
    target = args.target

    def line(name: str, value: object) -> str:
        text = escape(str(value), quote=False)
        return f"<tr {row}><th colspan=2 {cell}>{name}:</th><td colspan=2 {cell}>{text}</td></tr>"

    yield ""
    yield ""
    yield f"<table {args.table}>"
    yield line("Server Software", software)
    yield line("Server Hostname", target.host)
    yield line("Server Port", target.port)
    yield line("Document Path", redaction.name(args.path))
    yield line("Document Length", document(args, figures))
    yield line("Concurrency Level", args.concurrency)
    yield line("Time taken for tests", f"{figures.seconds:.3f} seconds")
    yield line("Complete requests", figures.complete)
    yield line("Failed requests", figures.failed)
    if figures.failed:
        yield (
            f"<tr {row}><td colspan=4 {cell} >   (Connect: {figures.connect_failed}, "
            f"Length: {figures.length_failed}, Exceptions: {figures.exceptions})</td></tr>"
        )
    if figures.other_status:
        yield line("Non-2xx responses", figures.other_status)
    if args.keep_alive:
        yield line("Keep-Alive requests", figures.kept_alive)
    yield line("Total transferred", f"{figures.transferred_bytes} bytes")
    if args.body is not None:
        yield line("Total body sent", figures.sent_bytes)
    yield line("HTML transferred", f"{figures.body_bytes} bytes")
    yield line("Requests per second", f"{figures.per_s:.2f}")
    kbytes = 1024 * figures.seconds
    yield line("Transfer rate", f"{figures.transferred_bytes / kbytes:.2f} kb/s received")
    if args.body is not None:
        both = figures.sent_bytes + figures.transferred_bytes
        for value, what in ((figures.sent_bytes, "sent"), (both, "total")):
            yield (
                f"<tr {row}><td colspan=2 {cell}>&nbsp;</td>"
                f"<td colspan=2 {cell}>{value / kbytes:.2f} kb/s {what}</td></tr>"
            )
    if times is not None:
        yield from _times(cell, row, times)
    yield "</table>"


def _times(cell: str, row: str, times: AbTimes) -> Iterator[str]:
    yield f"<tr {row}><th {cell} colspan=4>Connection Times (ms)</th></tr>"
    heads = "   ".join(f"<th {cell}>{name}</th>" for name in ("min", "avg", "max"))
    yield f"<tr {row}><th {cell}>&nbsp;</th> {heads}</tr>"
    rows: dict[str, TimeDistribution] = {
        "Connect": times.connect,
        "Processing": times.processing,
        "Total": times.total,
    }
    for name, spread in rows.items():
        cells = "".join(f"<td {cell}>{rounded(ms):5}</td>" for ms in (spread.least, spread.mean, spread.most))
        yield f"<tr {row}><th {cell}>{name}:</th>{cells}</tr>"
