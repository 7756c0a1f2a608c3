"""`prony report`: the self-contained HTML page of a stored experiment."""

from __future__ import annotations

from pathlib import Path

import typer

from prony.cli import options


def command(
    which: options.Which,
    output: Path = typer.Option(..., "--output", "-o", help="The file to write."),
    db: options.Db = None,
) -> int:
    """Write the HTML report of a stored experiment; the page needs no network."""
    from prony.report.html import write_html
    from prony.report.reading import load_result
    from prony.store import Store

    options.writable(output, "--output")
    write_html(load_result(Store.open(db), which), output)
    typer.echo(f"report: {output}")
    return 0
