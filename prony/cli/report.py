"""`prony report`: the self-contained HTML page of a stored experiment. Must not measure or judge."""

from __future__ import annotations

from pathlib import Path

import typer

from prony.cli import options


def command(
    which: str = typer.Argument(..., metavar="ID", help="An id, the beginning of one, or 'latest'."),
    output: Path = typer.Option(..., "--output", "-o", help="The file to write."),
    db: str | None = typer.Option(None, "--db", help="Where results are kept, a file or an SQLAlchemy URL."),
) -> int:
    """Write the HTML report of a stored experiment; the page needs no network."""
    from prony.cli.plan_showing import write_plan_page
    from prony.cli.series_showing import write_series_page
    from prony.cli.viewing import experiment_view
    from prony.report.html import write_html
    from prony.store import Store

    options.writable(output, "--output")
    store = Store.open(db)
    if not write_plan_page(store, which, output) and not write_series_page(store, which, output):
        write_html(experiment_view(store, which), output)
    typer.echo(f"report: {output}")
    return 0
