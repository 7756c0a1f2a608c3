"""`prony results publish`: a folder with a result's file, its page and a text with its main figures."""

from __future__ import annotations

import getpass
import os
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer import Option

from prony.cli import options
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.report.result import ResultView

EXPORT, PAGE, TEXT = "results.prony", "report.html", "README.md"
COMMON_NAMES = frozenset({"root", "user", "admin", "localhost", "ubuntu", "debian", "runner", "vm", "host"})
"""Names of users and hosts that identify nobody."""
FEWEST_LETTERS = 3


def publish(
    which: options.Which,
    output: Path = Option(
        ...,
        "--output",
        "-o",
        metavar="FOLDER",
        help=f"Folder for {EXPORT}, {PAGE} and {TEXT}; created if missing.",
    ),
    db: options.Db = None,
) -> int:
    """Write a result as a folder to publish: an export without names of users, hosts and other programs, the
    report, and a text with the main figures. In an existing text only the figures are replaced.
    """
    from prony.report.html import write_html, write_text
    from prony.report.reading import load_exported
    from prony.store import Store, transfer
    from prony_serve.publish import anonymous
    from prony_serve.publish.figures import placed, text

    folder = _folder(output)
    page = folder / TEXT
    before = page.read_text(encoding="utf-8") if page.exists() else None
    if before is not None:
        placed(before, "")  # refused before anything is written
    store = Store.open(db)
    row = store.experiment(which)
    if row.status == "running":
        raise UsageError(f"{row.id} is still running; publish it when it has ended")
    published = anonymous.anonymous(store.raw(row.id), Path.home())
    transfer.write_raw(published, folder / EXPORT)
    view = load_exported(folder / EXPORT)  # page and text show what the export has
    write_html(view, folder / PAGE)
    write_text(placed(_begun(view) if before is None else before, text(view)), page)
    public = anonymous.host_name(row.fingerprint.key)  # already its name in an imported export
    names = (name for name in _names(row.fingerprint.hostname) if name != public)
    for name, where in anonymous.mentions(published, names).items():
        typer.echo(f"note: the name '{name}' is still in {EXPORT}, such as in: {where}", err=True)
    typer.echo(f"published {row.id}: {folder / EXPORT}, {folder / PAGE}, {page}")
    return 0


def _folder(output: Path) -> Path:
    if output.exists() and not output.is_dir():
        raise UsageError(f"--output is {output}, a file; expected a folder")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise UsageError(f"--output: the folder {output} cannot be created ({fault.strerror})") from fault
    if not os.access(output, os.W_OK):
        raise UsageError(f"--output is {output}, a folder without write permission; name another")
    return output


def _begun(view: ResultView) -> str:
    """A new text, in which the author writes the conclusion above the figures."""
    from prony_serve.publish.figures import heading, paragraph

    lines = [heading(view.title, 1), "", *([paragraph(view.plan.note), ""] if view.plan.note else [])]
    lines += [f"`{PAGE}` is the report, `{EXPORT}` everything that was measured:", "", "```"]
    lines.append(f"prony results import {EXPORT}   # then: prony results show, rejudge, export {view.id}")
    if view.plan.command == "run":
        lines.append(f"prony run {shlex.quote(view.plan.name)} --against {EXPORT}   # compares your host")
    return "\n".join([*lines, "```", "", ""])


def _names(*hosts: str) -> Iterator[str]:
    """Identifying names: the publisher's and the hosts'."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    for name in dict.fromkeys((user, *hosts, socket.gethostname())):
        if len(name) >= FEWEST_LETTERS and name.lower() not in COMMON_NAMES:
            yield name
