"""`prony results`: what has been measured and stored, finding it, and moving it."""

from __future__ import annotations

from pathlib import Path

import typer

from prony.cli import exporting, lazily, options, publishing, rejudge, results_list, results_prune
from prony.cli.showing import show as show_result
from prony.errors import UsageError

app = typer.Typer(
    cls=lazily.Group,
    help="List, show, tag, judge again, export, publish, import and prune stored results.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.command("list")(results_list.command)


@app.command("show")
def show(
    which: options.Which,
    db: options.Db = None,
    details: options.Details = False,
    json: options.Json = False,
    report: options.Report = None,
) -> int:
    """Show one stored experiment as it was shown when it ended."""
    from prony.store import Store

    return show_result(Store.open(db), which, as_json=json, report=report, details=details)


app.command("rejudge")(rejudge.command)


@app.command("tag")
def tag(
    which: options.Which,
    name: str = typer.Argument(..., metavar="NAME", help="Letters, digits and . _ / -, such as main or 2.1."),
    only: bool = typer.Option(False, "--only", help="Remove the tag from every other result."),
    remove: bool = typer.Option(False, "--remove", help="Remove the tag from this result."),
    db: options.Db = None,
) -> int:
    """Give a result a name, by which it is found, shown and kept; several may have the same."""
    from prony.store import Store

    if only and remove:
        raise UsageError("--only gives the tag and --remove takes it: give one of them")
    store = Store.open(db)
    identifier = store.experiment(which).id
    if remove:
        if not store.untag(identifier, name):
            raise UsageError(f"{identifier} has no tag '{name}'")
        typer.echo(f"{identifier} is no longer tagged {name}")
        return 0
    store.tag(identifier, name, only=only)
    typer.echo(f"tagged {identifier}: {name}")
    return 0


@app.command("note")
def note(
    which: options.Which,
    text: str = typer.Argument(..., metavar="TEXT", help="Text of the note."),
    db: options.Db = None,
) -> int:
    """Add a note to a result, with your name and the time. Notes are exported with it."""
    from prony.store import Store

    store = Store.open(db)
    identifier = store.experiment(which).id
    store.note(identifier, text)
    typer.echo(f"noted on {identifier}")
    return 0


app.command("prune")(results_prune.command)


app.command("export")(exporting.export)
app.command("publish")(publishing.command)
lazily.elsewhere(app, "push", "results")


@app.command("import")
def import_results(
    file: Path = typer.Argument(
        ..., metavar="FILE", help="A file written by prony results export, or a rescued trial."
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


app.command("csv")(exporting.csv)
