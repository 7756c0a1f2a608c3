"""`prony results`, `prony compare-results` and `prony report`: stored results."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer import Argument, Option

from prony.cli import exporting, lazy_commands, options
from prony.cli.common import Common
from prony.cli.showing import show as show_result
from prony.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from prony.report.listings import PruneOut
    from prony.store import Found, FoundExperiment


app = typer.Typer(
    cls=lazy_commands.Group,
    help="List, show, tag, judge again, export, publish, import and prune stored results.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


PATTERN = "a pattern with * and ?"


def show(
    which: options.Which,
    db: options.Db = None,
    details: options.Details = False,
    json: options.Json = False,
    report: options.Report = None,
) -> int:
    """Show a stored experiment as at its end."""
    from prony.store import Store

    return show_result(Store.open(db), which, Common(json=json, report=report, details=details))


def tag(
    which: options.Which,
    name: str = Argument(..., metavar="NAME", help="Letters, digits and . _ / -, such as main or 2.1."),
    only: bool = Option(False, "--only", help="Remove the tag from every other result."),
    remove: bool = Option(False, "--remove", help="Remove the tag from this result."),
    db: options.Db = None,
) -> int:
    """Tag a result: commands accept the tag for the id, and prune keeps it. Results may share a tag."""
    from prony.store import Store

    if only and remove:
        raise UsageError("--only and --remove exclude each other")
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


def note(
    which: options.Which,
    text: str = Argument(..., metavar="TEXT", help="Text of the note."),
    db: options.Db = None,
) -> int:
    """Add a note to a result, with your name and the time. Notes are exported with it."""
    from prony.store import Store

    store = Store.open(db)
    identifier = store.experiment(which).id
    store.note(identifier, text)
    typer.echo(f"noted on {identifier}")
    return 0


def import_results(
    file: Path = Argument(
        ..., metavar="FILE", help="A file written by prony results export, or a rescued trial."
    ),
    db: options.Db = None,
) -> int:
    """Import an exported experiment, or a trial rescued after a failed write. Safe to repeat."""
    from prony.report.reading import load_result, remember_answer
    from prony.store import Store, transfer

    store = Store.open(db)
    identifier, added = transfer.read(store, file)
    remember_answer(store, load_result(store, identifier))
    what = f"{added} new {'trial' if added == 1 else 'trials'}" if added else "nothing new"
    typer.echo(f"imported {identifier}: {what}")
    return 0


def list_results(
    server: str | None = Option(None, "--server", help=f"With a trial of this server, {PATTERN}."),
    workload: str | None = Option(None, "--workload", help=f"... of this workload, {PATTERN}."),
    conforming: bool | None = Option(
        None,
        "--conforming/--not-conforming",
        help="Only results that conform, or only those that do not [default: both].",
        show_default=False,
    ),
    made_by: str | None = Option(
        None, "--command", help="Only results of this command: compare, run, load ...; a pattern."
    ),
    tag: str | None = Option(None, "--tag", help="Only results with this tag."),
    text: str | None = Option(None, "--text", help="Text in the title, or the beginning of the id."),
    since: str | None = Option(None, "--since", help="Only results since: 30d, 8w, 2026-11-22 ..."),
    until: str | None = Option(None, "--until", help="Only results before: same format."),
    limit: int | None = Option(None, "--limit", min=1, help="Show at most N, newest first [default: all]."),
    offset: int = Option(0, "--offset", min=0, help="Skip the newest N."),
    db: options.Db = None,
    json: options.Json = False,
) -> int:
    """List stored experiments, the newest first."""
    from prony.report.delivery import print_model
    from prony.report.listings import ListOut
    from prony.report.wording import printable
    from prony.store import Search, Store

    wanted = Search(
        server=server,
        workload=workload,
        command=made_by,
        conforming=conforming,
        tag=tag,
        text=text,
        since=None if since is None else options.moment(since, "--since"),
        until=None if until is None else options.moment(until, "--until"),
    )
    if wanted.since is not None and wanted.until is not None and wanted.since >= wanted.until:
        raise UsageError(f"--since {since} is not before --until {until}")
    listing = Store.open(db).search(wanted, limit=limit, offset=offset)
    for unreadable in listing.unreadable:
        typer.echo(f"prony: {printable(unreadable.sentence)}", err=True)
    if json:
        print_model(ListOut.of(listing))
    elif listing.experiments:
        _print_list(listing, offset)
    elif listing.unreadable or wanted != Search() or offset:
        typer.echo("No stored experiment matches.")
    else:
        typer.echo("No experiment is stored yet; measure with prony compare or prony load.")
    return 0


def _print_list(listing: Found, offset: int) -> None:
    from rich.markup import escape
    from rich.table import Table

    from prony.report.console import Console

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("ID", "When", "Conforming", "What"):
        table.add_column(heading, overflow="fold")
    for row in listing.experiments:
        when = f"{row.created.astimezone():%Y-%m-%d %H:%M}"
        table.add_row(row.id, when, f"{row.conforming} of {row.trials}", escape(_summary(row)))
    console = Console()
    console.print(table)
    shown = len(listing.experiments)
    if shown < listing.total:
        console.print(f"{offset + 1} to {offset + shown} of {listing.total}")


def _summary(row: FoundExperiment) -> str:
    marks = [*(() if row.status == "finished" else (row.status,)), *(("quick",) if row.quick else ())]
    marked = f" ({', '.join(marks)})" if marks else ""
    tags = f" [{', '.join(row.tags)}]" if row.tags else ""
    notes = [f"\n{note.text} ({note.by}, {note.made.astimezone():%Y-%m-%d})" for note in row.notes]
    answer = f"\n{row.answer}" if row.answer else ""
    return row.name + marked + tags + answer + "".join(notes)


def prune(
    keep: list[str] = Option(
        ...,
        "--keep",
        help="Results to keep: the newest N (50), or those of the last hours, days or weeks (12h, 90d, 8w). "
        "Repeatable: a result stays if any of them keeps it.",
    ),
    delete: bool = Option(False, "--delete", help="Delete the others [default: only list them]."),
    db: options.Db = None,
    json: options.Json = False,
) -> int:
    """Remove old and unreadable results; tagged and running results stay. Without --delete only list them.
    Removal is final: run prony results export first.
    """
    from prony.report.delivery import print_model
    from prony.report.listings import PrunedOut, PruneOut
    from prony.store import Store
    from prony.store.pruning import Keep

    newest, age = _kept(keep)
    store = Store.open(db)
    searched = store.search()
    experiments = searched.experiments
    old = [
        (row.id, row.name, row.created.isoformat(), row.trials)
        for row in Keep(newest=newest, age=age).drops(experiments, datetime.now(UTC))
    ]
    # Unreadable results cannot be kept.
    old += [(row.experiment_id, row.sentence, "", 0) for row in searched.unreadable if row.whole]
    goes = [
        PrunedOut(id=which, title=title, created=made, trials=trials, bytes=store.stored_bytes(which))
        for which, title, made, trials in old
    ]
    if delete:
        goes = [row for row in goes if store.remove(row.id)]
        if goes:
            store.shrink()
    gone = {row.id for row in goes}
    out = PruneOut(deleted=delete, kept=sum(row.id not in gone for row in experiments), experiments=goes)
    if json:
        print_model(out)
    else:
        _print_prune(out)
    return 0


def _kept(given: list[str]) -> tuple[int | None, timedelta | None]:
    numbers = [int(text) for text in given if re.fullmatch(r"\d{1,9}", text.strip())]
    ages = [options.age(text, "--keep") for text in given if not re.fullmatch(r"\d{1,9}", text.strip())]
    if not ages and max(numbers) == 0:
        raise UsageError("--keep 0 keeps nothing; expected 1 or more, or an age such as 90d")
    return max(numbers, default=None), max(ages, default=None)


def _print_prune(out: PruneOut) -> None:
    for row in out.experiments:
        trials = f"{row.trials} {'trial' if row.trials == 1 else 'trials'}"
        typer.echo(
            f"{row.id}  {row.created[:16].replace('T', ' ')}  {trials}, {_size(row.bytes)}  {row.title}"
        )
    room = _size(sum(row.bytes for row in out.experiments))
    count = len(out.experiments)
    what = f"{count} {'experiment' if count == 1 else 'experiments'}"
    if not count:
        typer.echo(f"nothing to remove; {out.kept} kept")
    elif out.deleted:
        typer.echo(f"removed {what} ({room}); {out.kept} kept")
    else:
        typer.echo(f"would remove {what} ({room}) and keep {out.kept}; nothing was removed: add --delete")


def _size(of: int) -> str:
    return f"{of / 1e6:.1f} MB" if of >= 100_000 else f"{of / 1e3:.1f} kB"


def judge_again(
    which: options.Which, limits: options.Limits = None, db: options.Db = None, json: options.Json = False
) -> int:
    """Judge a stored experiment again with this version and these limits. Trials and earlier judgements are
    kept; every command then shows the newest judgement.
    """
    from prony.experiment.conclude import rejudge
    from prony.report.delivery import deliver
    from prony.report.reading import load_result, remember_answer
    from prony.report.rejudged import as_out, render
    from prony.store import Store

    given = options.limits(limits)
    store = Store.open(db)
    identifier = store.experiment(which).id
    rejudged = rejudge(store, identifier, given)
    remember_answer(store, load_result(store, identifier))
    deliver(
        as_json=json,
        as_object=lambda: as_out(identifier, given, rejudged),
        table=lambda console: render(identifier, given, rejudged, console),
    )
    return ExitCode.OK


def page(
    which: options.Which,
    output: Path = Option(..., "--output", "-o", help="The file to write."),
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


def compare_two(
    first: options.Which,
    second: str = Argument(..., metavar="ID", help="The second result, such as an imported result."),
    db: options.Db = None,
    json: options.Json = False,
) -> int:
    """Compare two results: ratios within each host, and what differs between the hosts. Never a ratio or a
    p-value across hosts.
    """
    from prony.report.delivery import deliver
    from prony.report.reading import load_result
    from prony.report.terminal import render_two
    from prony.report.two_results import compared, to_json
    from prony.store import Store

    store = Store.open(db)
    results = (load_result(store, first), load_result(store, second))
    if results[0].id == results[1].id:
        raise UsageError(f"{first} and {second} are the same result ({results[0].id}); name two")
    two = compared(*results)
    if not any(left and right for left, right in (figure.sides for figure in two.figures)):
        raise UsageError(
            f"{results[0].id} and {results[1].id} have no cell with a figure in common: run the same plan on "
            "both hosts"
        )
    deliver(as_json=json, as_object=lambda: to_json(two), table=lambda console: render_two(two, console))
    return 0


for _name, _command in (
    ("list", list_results),
    ("show", show),
    ("rejudge", judge_again),
    ("tag", tag),
    ("note", note),
    ("prune", prune),
    ("export", exporting.export),
):
    app.command(_name)(_command)
lazy_commands.add(app, "publish", "results")
lazy_commands.add(app, "push", "results")
app.command("import")(import_results)
app.command("csv")(exporting.csv)
