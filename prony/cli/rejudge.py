"""`prony results rejudge`: stored trials judged again from their evidence."""

from __future__ import annotations

from prony.cli import options
from prony.errors import ExitCode


def command(
    which: options.Which,
    limits: options.Limits = None,
    db: options.Db = None,
    json: options.Json = False,
) -> int:
    """Judge a stored experiment again, by this Prony and under other limits. Trials stay as they are, earlier
    judgements are kept, and every command shows the newest one from then on.
    """
    from prony.experiment.rejudge import rejudge
    from prony.report.delivery import deliver
    from prony.report.rejudged import as_out, render
    from prony.store import Store

    given = options.limits(limits)
    store = Store.open(db)
    identifier = store.experiment(which).id
    found = rejudge(store, identifier, given)
    deliver(
        as_json=json,
        as_object=lambda: as_out(identifier, given, found),
        table=lambda console: render(identifier, given, found, console),
    )
    return ExitCode.OK
