"""`prony servers`: what can be started, in which versions, with which workloads. Must not start anything."""

from __future__ import annotations

import json as jsonlib
import sys

import typer


def command(json: bool = typer.Option(False, "--json", help="Print JSON instead of a table.")) -> int:
    """List the servers that Prony can start, their versions and workloads."""
    from rich.console import Console
    from rich.table import Table

    from prony.plan import workload
    from prony.server.catalogue import Catalogue

    catalogue = Catalogue.load()
    specs, faults = catalogue.specs()
    for fault in faults:
        print(f"prony: {fault}", file=sys.stderr)
    if json:
        rows = [
            {
                "name": spec.name,
                "title": spec.title,
                "runtime": spec.runtime,
                "versions": spec.versions,
                "workloads": list(spec.workloads),
            }
            for spec in specs
        ]
        jsonlib.dump(
            {"schema": 1, "servers": rows, "workloads": sorted(workload.known())}, sys.stdout, indent=2
        )
        print()
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("Server", "What it is", "Versions", "Workloads"):
        table.add_column(heading, overflow="fold")
    for spec in specs:
        versions = ", ".join(f"{what} {version}" for what, version in spec.versions.items())
        table.add_row(spec.name, spec.title, versions, ", ".join(spec.workloads))
    Console().print(table)
    return 0
