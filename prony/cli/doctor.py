"""`prony doctor`: is this host fit to measure, and if not, what to do about it. Must not change anything."""

from __future__ import annotations

import json as jsonlib
import sys
from dataclasses import asdict

import typer


def command(json: bool = typer.Option(False, "--json", help="Print JSON instead of a table.")) -> int:
    """Examine this host: CPUs, governor, steal, ports, descriptors, io_uring, THP, other load; each with what to do."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from prony.host.doctor import examine

    checks = examine(extra=_toolchain())
    if json:
        jsonlib.dump({"schema": 1, "checks": [asdict(check) for check in checks]}, sys.stdout, indent=2, default=str)
        print()
        return 0
    console = Console()
    style = {"ok": "green", "warn": "yellow", "bad": "bold red", "unknown": "cyan"}
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "Check", "Found", "Why it matters, and what to do"):
        table.add_column(heading, overflow="fold")
    for check in checks:
        status = str(check.status)
        advice = check.what_to_do and f"[bold]{escape(check.what_to_do)}[/bold]"
        text = " ".join(part for part in (escape(check.why), advice) if part)
        table.add_row(f"[{style[status]}]{status}[/]", escape(check.name), escape(check.found), text)
    console.print(table)
    worst = [check for check in checks if str(check.status) == "bad"]
    if worst:
        console.print(f"\n{len(worst)} of {len(checks)} checks are bad: figures from this host would be questioned.")
    return 0
