"""`prony doctor`: is this host fit to measure, and if not, what to do about it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from prony.cli import options

if TYPE_CHECKING:
    from prony.host.check import Health, HostCheck

STYLES: dict[Health, str] = {"ok": "green", "warn": "yellow", "bad": "bold red", "unknown": "cyan"}


def command(json: options.Json = False) -> int:
    """Check this host: CPUs, governor, steal, ports, descriptors, io_uring, THP, other load; with advice."""
    from rich.markup import escape
    from rich.table import Table

    from prony.host.doctor import examine
    from prony.report.console import Console

    checks = examine(extra=_toolchain())
    if json:
        from prony.report.delivery import print_model
        from prony.report.listings import DoctorOut, HostCheckOut

        print_model(DoctorOut(checks=[HostCheckOut(**asdict(check)) for check in checks]))
        return 0
    console = Console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "Check", "Found", "Why it matters, what to do"):
        table.add_column(heading, overflow="fold")
    for check in checks:
        table.add_row(coloured(check), escape(check.name), escape(check.found), advice(check))
    console.print(table)
    worst = [check for check in checks if str(check.status) == "bad"]
    if worst:
        console.print(
            f"\n{len(worst)} of {len(checks)} checks are bad: figures from this host would be questioned."
        )
    return 0


def coloured(check: HostCheck) -> str:
    """The status in its colour."""
    return f"[{STYLES[check.status]}]{check.status}[/]"


def advice(check: HostCheck) -> str:
    """Reason and remedy of a check that is not ok."""
    from rich.markup import escape

    what_to_do = check.what_to_do and f"[bold]{escape(check.what_to_do)}[/bold]"
    return " ".join(part for part in (escape(check.why) if check.status != "ok" else "", what_to_do) if part)


def _toolchain() -> list[HostCheck]:
    import shutil

    from prony.host.check import HostCheck
    from prony.server.jdk import find_jdks

    jdks, maven = find_jdks(), shutil.which("mvn")
    there = ", ".join(map(str, jdks)) or "none"
    no_jdk = (
        "The Java servers are built and run with it.",
        "Install a JDK 17 or newer, e.g. apt-get install openjdk-17-jdk.",
    )
    no_maven = ("not on the PATH", "It builds the Java servers.", "Install it, e.g. apt-get install maven.")
    compiles = any(jdk.has_compiler for jdk in jdks)
    return [
        HostCheck("JDK", "ok", there, "") if compiles else HostCheck("JDK", "bad", there, *no_jdk),
        HostCheck("Maven", "ok", maven, "") if maven else HostCheck("Maven", "bad", *no_maven),
    ]
