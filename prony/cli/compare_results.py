"""`prony compare-results`: two stored results side by side, as of two hosts."""

from __future__ import annotations

import typer

from prony.cli import options
from prony.errors import UsageError


def command(
    first: options.Which,
    second: str = typer.Argument(..., metavar="ID", help="The second result, such as an imported one."),
    db: options.Db = None,
    json: options.Json = False,
) -> int:
    """Put two results beside each other: ratios within each host, and what differs between them.

    No ratio and no p-value is ever given across hosts.
    """
    from prony.report.delivery import deliver
    from prony.report.reading import load_result
    from prony.report.terminal import render_two
    from prony.report.two_results import beside, to_json
    from prony.store import Store

    store = Store.open(db)
    results = (load_result(store, first), load_result(store, second))
    if results[0].id == results[1].id:
        raise UsageError(f"{first} and {second} are the same result ({results[0].id}); name two")
    found = beside(*results)
    if not any(left and right for left, right in (figure.sides for figure in found.figures)):
        raise UsageError(
            f"{results[0].id} and {results[1].id} have no cell with a figure in common: run the same plan on "
            "both hosts"
        )
    deliver(as_json=json, as_object=lambda: to_json(found), table=lambda console: render_two(found, console))
    return 0
