"""`prony servers`: what can be started; `check` asks whether it answers as its workloads declare."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from prony.cli import options
from prony.cli.targets import KINDS
from prony.errors import EnvironmentFault, ExitCode, UsageError

if TYPE_CHECKING:
    from prony.conformance.result import Conformance
    from prony.plan.workload import Workload
    from prony.server.build import Built
    from prony.server.catalogue import Catalogue
    from prony.server.spec import ServerSpec


Jdk = Annotated[
    str | None,
    Option("--jdk", help="JDK to use, a major version or a folder [default: what each server prefers]."),
]
app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def command(context: typer.Context, json: options.Json = False) -> int:
    """List the servers that Prony can start, their versions and workloads; `check` asks if they conform."""
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


def _line(name: str, line: str) -> None:
    print(f"prony: {name}: {line}", file=sys.stderr)


def _variants(spec: ServerSpec) -> str:
    """Those of one group with `|`, groups with `+`, those that stand alone after a semicolon."""
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
    """Build servers (once for the content of their sources) and say what was made; one that fails keeps no
    other from being built.
    """
    from rich.table import Table

    from prony.cli import targets
    from prony.report.console import Console
    from prony.server.build import build
    from prony.server.catalogue import Catalogue

    instead = f"prony servers build needs its sources: name {targets.LAUNCHED}"
    named = [one.launched for one in targets.servers(servers or (), instead=instead)]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("Server", "Build", "With"):
        table.add_column(heading, overflow="fold")
    failed: list[str] = []
    for spec in named or everything(Catalogue.load()):
        try:
            (built,) = build([spec], jdk=jdk, on_line=_line)
        except EnvironmentFault as fault:
            details = f"\n{fault.details}" if fault.details else ""
            print(f"prony: {spec.name}: {fault}{details}", file=sys.stderr)
            table.add_row(spec.name, "not built", "")
            if named or spec.name == spec.base:
                failed.append(spec.name)
            continue
        table.add_row(spec.name, *_said(built))
    Console().print(table)
    return ExitCode.ENVIRONMENT if failed else ExitCode.OK


def everything(catalogue: Catalogue) -> list[ServerSpec]:
    """Every server, and variants built otherwise or for other JDKs. Raises the first fault of a file."""
    found: list[ServerSpec] = []
    specs, faults = catalogue.specs()
    if faults:
        raise faults[0]
    for spec in specs:
        same = (known for known in found if (known.base, known.build, known.jdk) == _kind(spec))
        if next(same, None) is None:
            found.append(spec)
    return found


def _kind(spec: ServerSpec) -> tuple[object, ...]:
    return (spec.base, spec.build, spec.jdk)


def _said(built: Built) -> tuple[str, str]:
    versions = [f"{name} {version}" for name, version in built.versions.items()]
    versions += [f"JDK {built.jdk.version}"] if built.jdk is not None else []
    if built.artifact is None:
        return ("nothing to build", ", ".join(versions))
    return ("was there" if built.from_cache else f"built in {built.seconds:.0f} s", ", ".join(versions))


@app.command("check")
def check(
    servers: list[str] = Argument(None, help=f"{KINDS}."),
    all_servers: bool = Option(False, "--all", help="Every server of the catalogue with every variant."),
    workload: list[str] = Option(
        [], "--workload", "-w", help="Only this workload; repeatable [default: all it claims]."
    ),
    setting: list[str] = Option([], "--set", help="Set a workload setting, such as delay_ms=50; repeatable."),
    jdk: Jdk = None,
    json: options.Json = False,
) -> int:
    """Start each server fresh and ask whether it answers as its workloads declare: status, headers, every
    byte of the body, keep-alive, HEAD, a hundred connections at once, and what no decent client sends.
    """
    from prony.conformance.result import START
    from prony.report.conformance import as_json, summary_table, table
    from prony.report.console import Console
    from prony.report.delivery import print_model

    console = Console()
    done: list[Conformance] = []
    for spec, under in _tasks(servers or [], all_servers, workload, options.settings(setting)):
        print(f"prony: {spec.name} under {under.name} …", file=sys.stderr)
        done.append(_checked(spec, under, jdk))
        if not json:
            console.print(table(done[-1]))
            console.print()
    if json:
        print_model(as_json(done))
    elif len(done) > 1:
        console.print(summary_table(done))
    if any(result.check != START for one in done for result in one.failed):
        return ExitCode.NONCONFORMING
    return ExitCode.OK if all(one.started for one in done) else ExitCode.ENVIRONMENT


def _tasks(
    named: list[str], every: bool, only: list[str], settings: dict[str, float]
) -> list[tuple[ServerSpec, Workload]]:
    """Each server with each workload to check it under. Raises UsageError, before anything is built."""
    from prony.conformance.suite import check_deviations, claimed
    from prony.plan import workload

    specs = _chosen(named, every)
    tasks: list[tuple[ServerSpec, Workload]] = []
    for spec in specs:
        check_deviations(spec)
        if not only and not spec.workloads:
            tasks.append((spec, workload.from_url("/")))
            continue
        names = [name for name in only if name in spec.workloads] if every and only else claimed(spec, only)
        tasks += [(spec, workload.load(name)) for name in names]
    if not tasks:
        raise UsageError(f"no server offers {' or '.join(only)}; prony servers lists what each offers")
    unknown = set(settings) - {name for _, one in tasks for name in one.settings}
    if unknown:  # said by a workload that has not got it, in its own words
        tasks[0][1].with_settings({name: settings[name] for name in unknown})
    return [
        (spec, one.with_settings({key: value for key, value in settings.items() if key in one.settings}))
        for spec, one in tasks
    ]


def _chosen(named: list[str], every: bool) -> list[ServerSpec]:
    from prony.cli.targets import LAUNCHED, servers
    from prony.server.catalogue import Catalogue

    if every and named:
        raise UsageError(f"both --all and {', '.join(named)} were given; give one of them")
    if not every:
        if not named:
            raise UsageError("no server was named; name some (prony servers lists them), or give --all")
        found = servers(named, instead=f"prony servers check starts it fresh: name {LAUNCHED}")
        return list({one.name: one.launched for one in found}.values())
    specs, faults = Catalogue.load().specs()
    if faults:
        raise faults[0]
    return [spec for spec in specs if spec.workloads]


def _checked(spec: ServerSpec, under: Workload, jdk: str | None) -> Conformance:
    """What the suite finds; a build that fails is a result like another."""
    from prony.conformance.result import START, CheckResult, CheckStatus, Conformance
    from prony.conformance.suite import check as check_server
    from prony.server.build import build

    try:
        built = build([spec], jdk=jdk, on_line=_line)
    except EnvironmentFault as fault:
        failed = CheckResult(
            server=spec.name,
            workload=under.name,
            check=START,
            status=CheckStatus.FAILED,
            found=str(fault),
            expected="built",
        )
        return Conformance(server=spec.name, workload=under.name, results=(failed,))
    return check_server(built[0], under)
