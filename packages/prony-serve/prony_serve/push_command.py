"""`prony results push`: sends a stored experiment to Elasticsearch or OpenSearch."""

from __future__ import annotations

import sys
import time

import typer

from prony.cli import options
from prony.errors import ExitCode, UsageError

NAMED = 20
"""Rejected documents listed by name; the rest are counted."""


def push(
    which: str = typer.Argument(None, metavar="[ID]", help="An id or its beginning, or 'latest'."),
    to: str | None = typer.Option(
        None, "--to", metavar="URL", help="Elasticsearch or OpenSearch, such as http://127.0.0.1:9200."
    ),
    again: bool = typer.Option(
        False, "--again", help="Send acknowledged trials again; creates no duplicates."
    ),
    db: options.Db = None,
) -> int:
    """Send one experiment to a search engine: its trials, the seconds of their runs, and itself. Run it again
    to send what is missing (docs/exports.md).
    """
    if which is None or to is None:
        raise UsageError("expected an experiment and a URL: prony results push ID --to URL")
    from prony.store import Store
    from prony_serve.push.cluster import Cluster
    from prony_serve.push.faults import PushFault
    from prony_serve.push.pushing import push as push_to

    def wait(seconds: float) -> None:
        print(f"{cluster.where} accepts nothing now; retry in {seconds:g} s", file=sys.stderr)
        time.sleep(seconds)

    cluster = Cluster(to, sleep=wait)
    store = Store.open(db)
    identifier = store.experiment(which).id
    try:
        pushed = push_to(store, identifier, cluster, again=again)
    except PushFault as fault:
        raise PushFault(f"{fault}; acknowledged documents are kept: run it again to continue") from fault
    typer.echo(pushed.sentence())
    rejected = pushed.sent.rejected
    for document in rejected[:NAMED]:
        print(f"prony: rejected: {document}", file=sys.stderr)
    if len(rejected) > NAMED:
        print(f"prony: rejected: {len(rejected) - NAMED} more documents", file=sys.stderr)
    return ExitCode.ENVIRONMENT if rejected else ExitCode.OK
