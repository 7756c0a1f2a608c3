"""`prony compare-results`: two stored results beside each other, as of two machines. Must not measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from prony.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from prony.report.model import PairView, Spread
    from prony.report.two_machines import Result, TwoResults
    from prony.store import Store


def command(
    first: str = typer.Argument(..., metavar="ID", help="An id, the beginning of one, or 'latest'."),
    second: str = typer.Argument(..., metavar="ID", help="The other one, such as one that was imported."),
    db: str | None = typer.Option(None, "--db", help="Where results are kept, a file or an SQLAlchemy URL."),
    json: bool = typer.Option(False, "--json", help="Print JSON instead of tables."),
) -> int:
    """Put two results beside each other: ratios within each machine, and what differs between them.

    No ratio and no p-value is ever given across machines.
    """
    from prony.report.delivery import deliver
    from prony.report.two_machines import beside
    from prony.store import Store

    store = Store.open(db)
    results = (_result(store, first), _result(store, second))
    if results[0].id == results[1].id:
        raise UsageError(f"{first} and {second} are the same result ({results[0].id}); name two")
    found = beside(*results)
    if not any(left and right for left, right in (figure.sides for figure in found.figures)):
        raise UsageError(
            f"{results[0].id} and {results[1].id} have no cell with a figure in common: run the same plan on "
            "both machines"
        )
    deliver(as_json=json, as_object=lambda: _json(found), table=lambda console: _print(found, console))
    return 0


def _result(store: Store, which: str) -> Result:
    from prony.cli.viewing import trial_view
    from prony.report.two_machines import Result

    row = store.experiment(which)
    trials = tuple(trial_view(one) for one in store.trials(row.id))
    return Result(row.id, row.name, row.created, row.fingerprint, trials)


def _print(found: TwoResults, out: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    from prony.report.labels import named

    heads = [_head(side) for side in found.sides]
    out.print(Text("CONFOUNDED" if found.confounded else "SAME FINGERPRINT", style="bold yellow"), end="  ")
    out.print(Text(found.words))

    def table(title: str, *columns: str) -> Table:
        made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for column in columns:
            made.add_column(column, overflow="fold")
        return made

    ratios = table("\nRatios, each within its own machine", "where", "servers", *heads, "")
    for one in found.ratios:
        ratios.add_row(
            one.where,
            Text(f"{one.a} ÷ {one.b}"),
            *(Text(_ratio(side)) for side in one.sides),
            one.words,
        )
    if found.ratios:
        out.print(ratios)
    else:
        out.print("No pair of servers has three trials on one machine, so there is no ratio.")
    figures = table(
        "\nFigures, median over trials (never divided by each other)", "where", "server", "figure", *heads
    )
    for figure in found.figures:
        sides = [_spread(side, figure.figure) for side in figure.sides]
        figures.add_row(figure.where, Text(figure.server), named(figure.figure), *sides)
    out.print(figures)
    machines = table("\nWhat differs between the machines", "", *heads)
    for row in found.differing:
        machines.add_row(*map(Text, row))
    if found.differing:
        out.print(machines)


def _ratio(pair: PairView | None) -> str:
    from prony.report.wording import ratio

    if pair is None:
        return "–"
    if pair.ratio is None:
        return pair.verdict
    interval = "" if pair.low is None else f" [{ratio(pair.low)}, {ratio(pair.high)}]"
    return f"{ratio(pair.ratio)}{interval} {pair.verdict}"


def _head(side: Result) -> str:
    return f"{side.id} {side.fingerprint.hostname} ({side.fingerprint.architecture})"


def _spread(found: Spread | None, figure: str) -> str:
    from prony.report.labels import rounded

    if found is None:
        return "no figure"
    low, high = rounded(figure, found.low), rounded(figure, found.high)
    return rounded(figure, found.median) + (f" ({low}–{high})" if found.n > 1 else "")


def _json(found: TwoResults) -> dict[str, Any]:
    return {
        "schema": 1,
        "kind": "compare-results",
        "confounded": found.confounded,
        "words": found.words,
        "results": [
            {"id": side.id, "title": side.title, "fingerprint": side.fingerprint.model_dump(mode="json")}
            for side in found.sides
        ],
        "ratios": [
            {
                "where": one.where,
                "a": one.a,
                "b": one.b,
                "figure": one.figure,
                "words": one.words,
                "sides": [
                    None
                    if side is None
                    else {"ratio": side.ratio, "low": side.low, "high": side.high, "verdict": side.verdict}
                    for side in one.sides
                ],
            }
            for one in found.ratios
        ],
        "figures": [
            {
                "where": one.where,
                "server": one.server,
                "figure": one.figure,
                "medians": [None if side is None else side.median for side in one.sides],
            }
            for one in found.figures
        ],
        "differing": [{"what": what, "values": [left, right]} for what, left, right in found.differing],
    }
