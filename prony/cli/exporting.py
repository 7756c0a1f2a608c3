"""`prony results export`, and in short `prony results csv`: a result in another program's format."""

from __future__ import annotations

import getpass
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer import Option

from prony.cli import options
from prony.errors import StoreError, UsageError
from prony.files import whole
from prony.report import exports

if TYPE_CHECKING:
    from prony.report.result import ResultView


PRONY = "prony"
"""Everything as stored, for another store: not made from a result but from the rows themselves."""
TIDY = "tidy"  # the format csv


EXPORT, PAGE, TEXT = "results.prony", "report.html", "README.md"
COMMON_NAMES = frozenset({"root", "user", "admin", "localhost", "ubuntu", "debian", "runner", "vm", "host"})
"""Of users and hosts: they say nothing, and stand in many texts."""
FEWEST_LETTERS = 3


def export(
    which: options.Which,
    form: str = Option(
        PRONY,
        "--format",
        help=f"One of {', '.join(sorted((*exports.own(), PRONY)))} [default: {PRONY}, everything, for "
        "prony results import].",
    ),
    trial: list[str] = Option(
        None, "--trial", metavar="ID", help="Only this trial; the end of its id is enough; repeatable."
    ),
    output: Path | None = Option(
        None, "--output", "-o", help="A file, or a folder for a file per trial [default: standard output]."
    ),
    db: options.Db = None,
) -> int:
    """Write one experiment in a format of another program, or with everything in it for another host
    (docs/exports.md says what each format holds).
    """
    chosen = options.one_of(form, "--format", tuple(sorted((*exports.names(), PRONY))))
    if chosen == PRONY:
        return _as_stored(which, trial or [], output, db)
    return _as(chosen, which, trial or [], output, db)


def csv(
    which: options.Which,
    form: str = Option(
        TIDY, "--format", help="tidy, a row per trial and figure, or wrk, experiment A's columns."
    ),
    output: Path | None = Option(None, "--output", "-o", help="A file [default: standard output]."),
    db: options.Db = None,
) -> int:
    """Print the trials as CSV, in the order in which they ran: short for export --format csv."""
    chosen = options.one_of(form, "--format", (TIDY, "wrk"))
    return _as("csv" if chosen == TIDY else chosen, which, [], output, db)


def _as_stored(which: str, trials: list[str], output: Path | None, db: str | None) -> int:
    from prony.store import Store, transfer

    if trials:
        raise UsageError("--format prony holds the whole experiment; --trial goes with the other formats")
    if output is None:
        raise UsageError("--format prony is a compressed file: name it with -o, such as -o results.prony")
    options.writable(output, "--output")
    store = Store.open(db)
    identifier = store.experiment(which).id
    count = transfer.write(store, identifier, output)
    typer.echo(f"exported {identifier}, {count} {'trial' if count == 1 else 'trials'}: {output}")
    return 0


def _as(form: str, which: str, trials: list[str], output: Path | None, db: str | None) -> int:
    from prony.report.reading import load_result
    from prony.store import Store

    chosen = exports.named(form)
    into_folder = output is not None and output.is_dir()
    if output is not None and not into_folder:
        options.writable(output, "--output")
    if output is None and chosen.binary and sys.stdout.isatty():
        raise UsageError(f"--format {form} is not text: name a file, such as -o results{chosen.suffix}")
    view = load_result(Store.open(db), which)
    if trials:
        view = only(view, trials)

    def write(shown: ResultView, name: str) -> None:
        named = output / f"{name}{chosen.suffix}" if output is not None and into_folder else output
        _write(chosen.write(shown), named)

    if not chosen.one_trial or not view.trials:
        write(view, view.id)
        return 0
    ids = [one.record.id for one in view.trials if one.counts] or [one.record.id for one in view.trials]
    if len(ids) > 1 and not into_folder:
        raise UsageError(
            f"a file of --format {form} holds one trial, and {view.id} has {len(ids)}: name a folder with -o "
            f"for a file each, or one of them, such as --trial {ids[0]}"
        )
    for identifier in ids:
        write(only(view, [identifier]), identifier)
    return 0


def _write(made: exports.Exported, output: Path | None) -> None:
    """To the file, whole or not at all, or to standard output; and what its reader should be told."""
    if output is None:
        for piece in made.pieces():
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    else:
        try:
            with whole(output) as file:
                file.writelines(made.pieces())
        except OSError as fault:
            raise StoreError(f"{output} cannot be written ({fault.strerror}); name another file.") from fault
    if made.note:
        print(made.note, file=sys.stderr)


def only(view: ResultView, wanted: list[str]) -> ResultView:
    """The result with these trials alone, named by id or its end. Raises UsageError where not one matches."""
    known = [trial.record.id for part in view.parts for cell in part.cells for trial in cell.every]
    chosen = set()
    for name in wanted:
        found = [one for one in known if one == name] or [one for one in known if one.endswith(name)]
        if len(found) != 1 or not name:
            said = "no trial" if not found else f"{len(found)} trials"
            every = ", ".join(known) or "none"
            raise UsageError(f"--trial {name}: {said} of {view.id} of this name; it has {every}")
        chosen.add(found[0])
    parts = tuple(
        replace(
            part,
            cells=tuple(
                replace(
                    cell,
                    trials=tuple(one for one in cell.trials if one.record.id in chosen),
                    controls=tuple(one for one in cell.controls if one.record.id in chosen),
                    superseded=(),
                )
                for cell in part.cells
            ),
        )
        for part in view.parts
    )
    return replace(view, parts=parts)


def publish(
    which: options.Which,
    output: Path = Option(
        ..., "--output", "-o", metavar="FOLDER", help=f"Gets {EXPORT}, {PAGE} and {TEXT}; made if need be."
    ),
    db: options.Db = None,
) -> int:
    """Write a folder to publish: everything measured in one file, without names of users, hosts and other
    programs; the page; and a text with the main figures, of which only those are written anew when it is
    there already.
    """
    from prony.report.html import write_html, write_text
    from prony.report.published import placed, text
    from prony.report.reading import load_exported
    from prony.store import Store, publishing, transfer

    folder = _folder(output)
    page = folder / TEXT
    before = page.read_text(encoding="utf-8") if page.exists() else None
    if before is not None:
        placed(before, "")  # refused before anything is written
    store = Store.open(db)
    row = store.experiment(which)
    if row.status == "running":
        raise UsageError(f"{row.id} is still running; publish it when it has ended")
    found = publishing.anonymous(store.raw(row.id), Path.home())
    transfer.write_raw(found, folder / EXPORT)
    view = load_exported(folder / EXPORT)  # what a reader has: page and text are made from nothing else
    write_html(view, folder / PAGE)
    write_text(placed(_begun(view) if before is None else before, text(view)), page)
    public = publishing.host_name(row.fingerprint.key)  # its name already where a published file was imported
    names = (name for name in _names(row.fingerprint.hostname) if name != public)
    for name, where in publishing.mentions(found, names).items():
        typer.echo(f"note: the name '{name}' is still in {EXPORT}, such as in: {where}", err=True)
    typer.echo(f"published {row.id}: {folder / EXPORT}, {folder / PAGE}, {page}")
    return 0


def _folder(output: Path) -> Path:
    if output.exists() and not output.is_dir():
        raise UsageError(f"--output names {output}, which is a file; name a folder")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise UsageError(f"--output: the folder {output} cannot be made ({fault.strerror})") from fault
    if not os.access(output, os.W_OK):
        raise UsageError(f"--output names {output}, where you may not write; name another folder")
    return output


def _begun(view: ResultView) -> str:
    """A new text: its author writes the conclusion above the figures. It names files beside it only."""
    from prony.report.published import heading, paragraph

    lines = [heading(view.title, 1), "", *([paragraph(view.plan.note), ""] if view.plan.note else [])]
    lines += [f"`{PAGE}` is the report, `{EXPORT}` everything that was measured:", "", "```"]
    lines.append(f"prony results import {EXPORT}   # then: prony results show, rejudge, export {view.id}")
    if view.plan.command == "run":
        lines.append(f"prony run {shlex.quote(view.plan.name)} --against {EXPORT}   # your host beside it")
    return "\n".join([*lines, "```", "", ""])


def _names(*hosts: str) -> Iterator[str]:
    """Of who publishes, and of the hosts, as far as they are names."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    for name in dict.fromkeys((user, *hosts, socket.gethostname())):
        if len(name) >= FEWEST_LETTERS and name.lower() not in COMMON_NAMES:
            yield name
