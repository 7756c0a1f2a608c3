"""`prony results export`, and in short `prony results csv`: a result in another program's format."""

from __future__ import annotations

import sys
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
"""The stored rows, for another store."""
TIDY = "tidy"  # the format csv


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
    """Write an experiment in another program's format, or in full for another host (docs/exports.md)."""
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
    """Print the trials as CSV, in order of execution; short for export --format csv."""
    chosen = options.one_of(form, "--format", (TIDY, "wrk"))
    return _as("csv" if chosen == TIDY else chosen, which, [], output, db)


def _as_stored(which: str, trials: list[str], output: Path | None, db: str | None) -> int:
    from prony.store import Store, transfer

    if trials:
        raise UsageError("--format prony holds the whole experiment; --trial needs another format")
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
    ids = [t.record.id for t in view.trials if t.counts] or [t.record.id for t in view.trials]
    if len(ids) > 1 and not into_folder:
        raise UsageError(
            f"--format {form} holds one trial per file, and {view.id} has {len(ids)}: name a folder with -o "
            f"for a file each, or a trial, such as --trial {ids[0]}"
        )
    for identifier in ids:
        write(only(view, [identifier]), identifier)
    return 0


def _write(made: exports.Exported, output: Path | None) -> None:
    """Write atomically to the file, or to standard output; print the notice."""
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
    """The result reduced to these trials, by id or its end. Raises UsageError unless each matches one."""
    known = [trial.record.id for part in view.parts for cell in part.cells for trial in cell.every]
    chosen = set()
    for name in wanted:
        ids = [id for id in known if id == name] or [id for id in known if id.endswith(name)]
        if len(ids) != 1 or not name:
            count = "no trial" if not ids else f"{len(ids)} trials"
            every = ", ".join(known) or "none"
            raise UsageError(f"--trial {name} matches {count} of {view.id}; it has {every}")
        chosen.add(ids[0])
    parts = tuple(
        replace(
            part,
            cells=tuple(
                replace(
                    cell,
                    trials=tuple(id for id in cell.trials if id.record.id in chosen),
                    controls=tuple(id for id in cell.controls if id.record.id in chosen),
                    superseded=(),
                )
                for cell in part.cells
            ),
        )
        for part in view.parts
    )
    return replace(view, parts=parts)
