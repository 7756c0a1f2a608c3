"""`prony results list`: finds stored experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from prony.cli import options
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.store import Found, FoundExperiment

PATTERN = "a pattern with * and ?"


def command(
    server: str | None = typer.Option(None, "--server", help=f"With a trial of this server, {PATTERN}."),
    workload: str | None = typer.Option(None, "--workload", help=f"... of this workload, {PATTERN}."),
    conforming: bool | None = typer.Option(
        None,
        "--conforming/--not-conforming",
        help="Only results that conform, or only those that do not [default: both].",
        show_default=False,
    ),
    made_by: str | None = typer.Option(
        None, "--command", help="Only results of this command: compare, run, load ...; a pattern."
    ),
    tag: str | None = typer.Option(None, "--tag", help="Only results with this tag."),
    text: str | None = typer.Option(None, "--text", help="Text in the title, or the beginning of the id."),
    since: str | None = typer.Option(None, "--since", help="Only results since: 30d, 8w, 2026-11-22 ..."),
    until: str | None = typer.Option(None, "--until", help="Only results before: same format."),
    limit: int | None = typer.Option(
        None, "--limit", min=1, help="Show at most N, newest first [default: all]."
    ),
    offset: int = typer.Option(0, "--offset", min=0, help="Skip the newest N."),
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
    found = Store.open(db).search(wanted, limit=limit, offset=offset)
    for one in found.unreadable:
        typer.echo(f"prony: {printable(one.sentence)}", err=True)
    if json:
        print_model(ListOut.of(found))
    elif found.experiments:
        _print(found, offset)
    elif found.unreadable or wanted != Search() or offset:
        typer.echo("No stored experiment matches.")
    else:
        typer.echo("Nothing has been stored yet; measure something: prony compare, prony load.")
    return 0


def _print(found: Found, offset: int) -> None:
    from rich.markup import escape
    from rich.table import Table

    from prony.report.console import Console

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("ID", "When", "Conforming", "Status", "What"):
        table.add_column(heading, overflow="fold")
    for one in found.experiments:
        status = one.status + (" (quick)" if one.quick else "")
        when = f"{one.created.astimezone():%Y-%m-%d %H:%M}"
        table.add_row(one.id, when, f"{one.conforming} of {one.trials}", status, escape(_what(one)))
    console = Console()
    console.print(table)
    shown = len(found.experiments)
    if shown < found.total:
        console.print(f"{offset + 1} to {offset + shown} of {found.total}")


def _what(one: FoundExperiment) -> str:
    """Title, tags in brackets, and the notes below."""
    tags = f" [{', '.join(one.tags)}]" if one.tags else ""
    notes = [f"\n{note.text} ({note.by}, {note.made.astimezone():%Y-%m-%d})" for note in one.notes]
    return one.name + tags + "".join(notes)
