"""`prony results`: what has been measured and stored, and moving it. Must not change a stored trial."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from prony.cli import options, rejudge
from prony.cli.showing import show as show_result
from prony.report import exports

app = typer.Typer(
    help="List, show, judge again, export and import stored results.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("list")
def list_results(db: options.Db = None, json: options.Json = False) -> int:
    """List stored experiments, the newest first."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from prony.experiment.stored import plan_of
    from prony.report.delivery import print_model
    from prony.report.listings import ListedOut, ListOut
    from prony.store import Store

    rows = Store.open(db).experiments()
    if json:
        print_model(
            ListOut(
                experiments=[
                    ListedOut(
                        id=row.id,
                        title=row.name,
                        command=plan_of(row).command,
                        created=row.created.isoformat(),
                        status=row.status,
                        quick=row.quick,
                        trials=row.trials,
                    )
                    for row in rows
                ]
            )
        )
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
    which: options.Which,
    db: options.Db = None,
    json: options.Json = False,
    report: options.Report = None,
) -> int:
    """Show one stored experiment as it was shown when it ended."""
    from prony.store import Store

    return show_result(Store.open(db), which, as_json=json, report=report)


app.command("rejudge")(rejudge.command)


@app.command("export")
def export(
    which: options.Which,
    output: Path = typer.Option(..., "--output", "-o", help="The file to write."),
    db: options.Db = None,
) -> int:
    """Write one experiment with everything in it, histograms included, to a file for another host."""
    from prony.store import Store, transfer

    options.writable(output, "--output")
    store = Store.open(db)
    identifier = store.experiment(which).id
    trials = transfer.write(store, identifier, output)
    typer.echo(f"exported {identifier}, {trials} {'trial' if trials == 1 else 'trials'}: {output}")
    return 0


@app.command("import")
def import_results(
    file: Path = typer.Argument(
        ..., metavar="FILE", help="What prony results export wrote, or a rescued trial."
    ),
    db: options.Db = None,
) -> int:
    """Take an exported experiment into this store, or a trial that was rescued when it could not be stored.
    Doing it again changes nothing.
    """
    from prony.store import Store, transfer

    identifier, added = transfer.read(Store.open(db), file)
    what = f"{added} new {'trial' if added == 1 else 'trials'}" if added else "everything was there already"
    typer.echo(f"imported {identifier}: {what}")
    return 0


@app.command("csv")
def csv(
    which: options.Which,
    form: str = typer.Option(
        "tidy",
        "--format",
        help=f"One of {', '.join(exports.names())} [default: tidy, a row per trial and figure].",
    ),
    output: Path | None = typer.Option(None, "--output", "-o", help="A file [default: standard output]."),
    db: options.Db = None,
) -> int:
    """Print the trials as CSV, in the order in which they ran."""
    from prony.report.html import write_text
    from prony.report.reading import load_result
    from prony.store import Store

    chosen = exports.named(options.one_of(form, "--format", exports.names()))
    if output is not None:
        options.writable(output, "--output")
    made = chosen.write(load_result(Store.open(db), which))
    if output is None:
        sys.stdout.write(made.text)
    else:
        write_text(made.text, output)
    if made.note:
        print(made.note, file=sys.stderr)
    return 0
