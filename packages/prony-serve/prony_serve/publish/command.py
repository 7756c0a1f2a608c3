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
"""Of users and hosts: they say nothing, and stand in many texts."""
FEWEST_LETTERS = 3


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
    found = anonymous.anonymous(store.raw(row.id), Path.home())
    transfer.write_raw(found, folder / EXPORT)
    view = load_exported(folder / EXPORT)  # what a reader has: page and text are made from nothing else
    write_html(view, folder / PAGE)
    write_text(placed(_begun(view) if before is None else before, text(view)), page)
    public = anonymous.host_name(row.fingerprint.key)  # its name already where a published file was imported
    names = (name for name in _names(row.fingerprint.hostname) if name != public)
    for name, where in anonymous.mentions(found, names).items():
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
    from prony_serve.publish.figures import heading, paragraph

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
