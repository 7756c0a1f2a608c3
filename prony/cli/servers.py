"""`prony servers`: the servers that Prony can start, and their builds."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from prony.cli import lazy_commands, options
from prony.errors import EnvironmentFault, ExitCode

if TYPE_CHECKING:
    from prony.server.build import Built
    from prony.server.catalogue import Catalogue
    from prony.server.spec import ServerSpec


Jdk = Annotated[
    str | None,
    Option("--jdk", help="JDK to use, a major version or a folder [default: each server's own]."),
]
app = typer.Typer(add_completion=False, rich_markup_mode=None, cls=lazy_commands.Group)


@app.callback(invoke_without_command=True)
def command(context: typer.Context, json: options.Json = False) -> int:
    """List the servers that Prony can start, with versions and workloads; `check` tests conformance."""
    if context.invoked_subcommand is not None:
        return ExitCode.OK
    from rich.text import Text

    from prony.plan import workload
    from prony.report.console import Console
    from prony.server.catalogue import Catalogue

    specs, faults = Catalogue.load().specs()
    for fault in faults:
        print(f"prony: {fault}", file=sys.stderr)
    if json:
        from prony.report.delivery import print_model
        from prony.report.listings import ListedServerOut, ServersOut

        listed = [
            ListedServerOut(
                name=spec.name,
                title=spec.title,
                runtime=spec.runtime,
                versions=spec.versions,
                workloads=list(spec.workloads),
            )
            for spec in specs
        ]
        print_model(ServersOut(servers=listed, workloads=sorted(workload.known())))
        return ExitCode.OK
    rows = [("Server", "What it is", "Variants", "Workloads")]
    rows += [
        (spec.name, spec.title, _variants(spec), ", ".join(spec.workloads))
        for spec in specs
        if spec.name == spec.base
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    console = Console(width=None if sys.stdout.isatty() else sum(widths) + 6)
    for at, row in enumerate(rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        console.print(Text(line.rstrip(), style="" if at else "bold"), no_wrap=True, overflow="ellipsis")
    print("\nprony compare NAME NAME; a variant of each group: tomcat:async+https. Versions: --json")
    return ExitCode.OK


def print_build_line(server: str, text: str) -> None:
    print(f"prony: {server}: {text}", file=sys.stderr)


def _variants(spec: ServerSpec) -> str:
    """Variants: `|` within a group, `+` between groups, ungrouped variants after a semicolon."""
    groups = " + ".join("|".join(names) for names in spec.groups.values())
    alone = [name for name, variant in spec.variants.items() if variant.group is None]
    return "; ".join(filter(None, (groups, *alone)))


@app.command("build")
def build_servers(
    servers: list[str] = Argument(
        None,
        help="NAME, NAME:VARIANT, or a folder with a server.yaml [default: every server of the catalogue].",
    ),
    jdk: Jdk = None,
) -> int:
    """Build servers, once per content of their sources, and list the builds. Continues after a failure."""
    from rich.table import Table

    from prony.cli import targets
    from prony.report.console import Console
    from prony.server.build import build
    from prony.server.catalogue import Catalogue

    instead = f"prony servers build needs its sources: name {targets.LAUNCHED}"
    named = [server.launched for server in targets.servers(servers or (), instead=instead)]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("Server", "Build", "With"):
        table.add_column(heading, overflow="fold")
    failed: list[str] = []
    for spec in named or everything(Catalogue.load()):
        try:
            (built,) = build([spec], jdk=jdk, on_line=print_build_line)
        except EnvironmentFault as fault:
            details = f"\n{fault.details}" if fault.details else ""
            print(f"prony: {spec.name}: {fault}{details}", file=sys.stderr)
            table.add_row(spec.name, "not built", "")
            if named or spec.name == spec.base:
                failed.append(spec.name)
            continue
        table.add_row(spec.name, *_build_row(built))
    Console().print(table)
    return ExitCode.ENVIRONMENT if failed else ExitCode.OK


def everything(catalogue: Catalogue) -> list[ServerSpec]:
    """Every server, and variants with builds of their own. Raises the first fault of a file."""
    listed: list[ServerSpec] = []
    specs, faults = catalogue.specs()
    if faults:
        raise faults[0]
    for spec in specs:
        same = (known for known in listed if (known.base, known.build, known.jdk) == _kind(spec))
        if next(same, None) is None:
            listed.append(spec)
    return listed


def _kind(spec: ServerSpec) -> tuple[object, ...]:
    return (spec.base, spec.build, spec.jdk)


def _build_row(built: Built) -> tuple[str, str]:
    versions = [f"{name} {version}" for name, version in built.versions.items()]
    versions += [f"JDK {built.jdk.version}"] if built.jdk is not None else []
    if built.artifact is None:
        return ("nothing to build", ", ".join(versions))
    return ("cached" if built.from_cache else f"built in {built.seconds:.0f} s", ", ".join(versions))


lazy_commands.add(app, "check", "servers")
