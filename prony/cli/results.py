"""`prony results`: what has been measured and stored. Must not change anything."""

from __future__ import annotations

import json as jsonlib
import sys
from pathlib import Path

import typer

from prony.cli.showing import show_experiment

app = typer.Typer(
    help="List and show stored results.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DB = typer.Option(None, "--db", help="Where results are kept, a file or an SQLAlchemy URL.")


@app.command("list")
def list_results(
    db: str | None = DB, json: bool = typer.Option(False, "--json", help="Print JSON instead of a table.")
) -> int:
    """List stored experiments, the newest first."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from prony.store import Store

    store = Store.open(db)
    rows = store.experiments()
    if json:
        listed = [
            {
                "id": row.id,
                "title": row.name,
                "created": row.created.isoformat(),
                "status": row.status,
                "quick": row.quick,
                "trials": row.trials,
            }
            for row in rows
        ]
        jsonlib.dump({"schema": 1, "experiments": listed}, sys.stdout, indent=2)
        print()
        return 0
    if not rows:
        Console().print("Nothing has been stored yet; measure something: prony compare, prony load.")
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("ID", "When", "Trials", "Status", "What"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        status = row.status + (" (quick)" if row.quick else "")
        when = f"{row.created.astimezone():%Y-%m-%d %H:%M}"
        table.add_row(row.id, when, str(row.trials), status, escape(row.name))
    Console().print(table)
    return 0


@app.command("show")
def show(
    which: str = typer.Argument(..., metavar="ID", help="An id, the beginning of one, or 'latest'."),
    db: str | None = DB,
    json: bool = typer.Option(False, "--json", help="Print JSON instead of tables."),
    report: Path | None = typer.Option(
        None, "--report", help="Write a self-contained HTML report to this file."
    ),
) -> int:
    """Show one stored experiment as it was shown when it ended."""
    from prony.store import Store

    return show_experiment(Store.open(db), which, as_json=json, report=report)
