"""`prony results prune`: lists results that no rule keeps; --delete removes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import typer

from prony.cli import options
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.report.listings import PruneOut


def command(
    keep: list[str] = typer.Option(
        ...,
        "--keep",
        help="Results to keep: the newest N (50), or those of the last hours, days or weeks (12h, 90d, 8w). "
        "Repeatable: what either keeps, stays.",
    ),
    delete: bool = typer.Option(False, "--delete", help="Delete the others [default: only list them]."),
    db: options.Db = None,
    json: options.Json = False,
) -> int:
    """Remove old results: all but the newest, those with a tag and those that are running; and those that
    cannot be read. Lists what would go unless --delete is given; what was removed cannot be had back (prony
    results export first).
    """
    from prony.report.delivery import print_model
    from prony.report.listings import PrunedOut, PruneOut
    from prony.store import Store
    from prony.store.pruning import Keep

    newest, age = _kept(keep)
    store = Store.open(db)
    searched = store.search()
    found = searched.experiments
    goes = [
        PrunedOut(
            id=one.id,
            title=one.name,
            created=one.created.isoformat(),
            trials=one.trials,
            bytes=store.stored_bytes(one.id),
        )
        for one in Keep(newest=newest, age=age).drops(found, datetime.now(UTC))
    ] + [
        PrunedOut(
            id=one.experiment_id,
            title=one.sentence,
            created="",
            trials=0,
            bytes=store.stored_bytes(one.experiment_id),
        )
        for one in searched.unreadable
        if one.whole  # nobody can keep what nobody can read
    ]
    if delete:
        goes = [one for one in goes if store.remove(one.id)]
        if goes:
            store.shrink()
    gone = {one.id for one in goes}
    out = PruneOut(deleted=delete, kept=sum(one.id not in gone for one in found), experiments=goes)
    if json:
        print_model(out)
    else:
        _print(out)
    return 0


def _kept(given: list[str]) -> tuple[int | None, timedelta | None]:
    """Number and age; of several the one that keeps more."""
    numbers = [int(text) for text in given if re.fullmatch(r"\d{1,9}", text.strip())]
    ages = [options.age(text, "--keep") for text in given if not re.fullmatch(r"\d{1,9}", text.strip())]
    if not ages and max(numbers) == 0:
        raise UsageError("--keep 0 keeps nothing; expected 1 or more, or an age such as 90d")
    return max(numbers, default=None), max(ages, default=None)


def _print(out: PruneOut) -> None:
    for one in out.experiments:
        trials = f"{one.trials} {'trial' if one.trials == 1 else 'trials'}"
        typer.echo(
            f"{one.id}  {one.created[:16].replace('T', ' ')}  {trials}, {_size(one.bytes)}  {one.title}"
        )
    room = _size(sum(one.bytes for one in out.experiments))
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
