"""`prony hosts`: certificates, workers and scheduler of a multi-host laboratory, and its readiness checks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from prony.cli import options
from prony.errors import EnvironmentFault, ExitCode, UsageError

if TYPE_CHECKING:
    from prony_hosts.check import CheckOfHost
    from prony_hosts.process import Settings

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)
File = Annotated[Path, typer.Argument(metavar="HOSTS.yaml", help="The hosts (docs/hosts.md).")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Plain TCP beyond loopback: every client of the port is trusted.")
]


@app.command("check")
def check(file: File, insecure: Insecure = False, json: options.Json = False) -> int:
    """Check versions, clocks, links, limits and the doctor's findings on every host, with advice."""
    from prony_hosts import check as checks
    from prony_hosts.file import read

    hosts = read(file, insecure=insecure)
    rows = checks.check(hosts, say=_say)
    if json:
        from prony.report.delivery import print_model
        from prony.report.listings import HostsCheckOut

        print_model(HostsCheckOut.of((row.host, row.check) for row in rows))
    else:
        _print(rows)
    missing = any(row.check.status == "bad" and not row.check.name.startswith("doctor") for row in rows)
    return ExitCode.ENVIRONMENT if missing else ExitCode.OK


def _print(rows: list[CheckOfHost]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from prony.cli.doctor import advice, coloured
    from prony.report.console import Console

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("Host", "", "Check", "Found", "Why it matters, what to do"):
        table.add_column(heading, overflow="fold")
    before = ""
    for row in rows:
        host, before = "" if row.host == before else row.host, row.host
        table.add_row(
            escape(host),
            coloured(row.check),
            escape(row.check.name),
            escape(row.check.found),
            advice(row.check),
        )
    Console().print(table)


@app.command("up")
def up(file: File, insecure: Insecure = False) -> int:
    """Start the scheduler here and the workers of the file over ssh; they stay until `prony hosts down`."""
    from prony_hosts.attach import connected, end_all
    from prony_hosts.file import read

    hosts = read(file, insecure=insecure)
    with connected(hosts, say=_say, keep=True) as laboratory:
        for fault in laboratory.faults.values():
            print(f"prony: {fault}", file=sys.stderr)
        if laboratory.faults:
            end_all(laboratory)
            raise EnvironmentFault("the scheduler and all registered workers were stopped")
        addresses = {entry.host.name: entry.address for entry in laboratory.hosts}
        for host in hosts.hosts():
            print(f"{host.name}  {addresses.get(host.name, 'not registered: start its worker by hand')}")
    return ExitCode.OK


@app.command("down")
def down(file: File, insecure: Insecure = False) -> int:
    """End the scheduler and the workers that `prony hosts up` started; those started by hand wait again."""
    from prony_hosts.attach import connected, end_all, listens
    from prony_hosts.file import read

    hosts = read(file, insecure=insecure)
    if not listens(hosts):
        print(f"nothing listens at {hosts.lab.scheduler}: already down")
        return ExitCode.OK
    with connected(hosts, start=False) as laboratory:
        names = sorted(laboratory.workers())
        end_all(laboratory)
    print(f"stopped the scheduler at {hosts.lab.scheduler} and the workers {', '.join(names) or '(none)'}")
    return ExitCode.OK


@app.command("worker")
def worker(
    scheduler: Annotated[
        str | None, typer.Argument(metavar="tls://ADDRESS:PORT", help="The laboratory's scheduler.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of this host, as `connect:` in hosts.yaml has it.")
    ] = None,
    role: Annotated[Literal["server", "load"], typer.Option("--role", help="Role of the host.")] = "load",
    certificates: Annotated[
        Path | None, typer.Option("--certificates", help="Folder with ca.pem and host.pem.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen", help="Address to listen on [default: this host's address towards the scheduler]."
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0: any.")] = 0,
    insecure: Insecure = False,
    settings: Annotated[str | None, typer.Option("--settings", hidden=True)] = None,
    detach: Annotated[bool, typer.Option("--detach", hidden=True)] = False,
) -> int:
    """Serve the laboratory on a host without ssh access, by hand or by systemd. Waits for a scheduler, and
    again after it has gone; Ctrl-C or SIGTERM ends it.
    """
    from prony_hosts import process

    if settings is not None:  # over ssh: `prony hosts up` and the commands with --hosts
        return process.detached() if detach else process.main()
    process.serve(
        _settings(scheduler, name, role, certificates, listen, port, insecure),
        lambda address: _say(f"ready at {address}"),
        lambda: _say(f"waiting for a scheduler at {scheduler}"),
    )
    return ExitCode.OK


def _settings(
    scheduler: str | None,
    name: str | None,
    role: str,
    folder: Path | None,
    listen: str | None,
    port: int,
    insecure: bool,
) -> Settings:
    import platform

    from prony_hosts import certificates
    from prony_hosts.file import transport_fault
    from prony_hosts.process import Settings

    if scheduler is None:
        raise UsageError("no scheduler given; expected tls://ADDRESS:PORT, as lab: in hosts.yaml has it")
    fault = transport_fault(scheduler, folder is not None, insecure, [listen])
    if fault is not None:
        raise UsageError(fault)
    tls = folder is not None and scheduler.startswith("tls://")
    return Settings(
        scheduler=scheduler,
        lives="ever",
        identity=certificates.identity(folder, certificates.ON_HOST) if tls and folder else None,
        name=name or platform.node(),
        role=role,
        listen=listen or "",
        port=port,
    )


@app.command("certificates")
def certificates(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to create.")]) -> int:
    """Make an authority, a certificate for the laboratory and one for hosts, valid for a year."""
    from prony_hosts import certificates as issuing

    for file, use in zip(issuing.make(folder), issuing.USES, strict=True):
        print(f"{file}  {use}")
    return ExitCode.OK


def _say(line: str) -> None:
    print(f"prony: {line}", file=sys.stderr)
