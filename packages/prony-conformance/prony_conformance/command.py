"""`prony servers check`: does a server answer as its workloads declare?"""

from __future__ import annotations

import sys

from typer import Argument, Option

from prony.cli import options, targets
from prony.cli.servers import Jdk, print_build_line
from prony.errors import EnvironmentFault, ExitCode, UsageError
from prony.evidence.conformance import START, CheckResult, CheckStatus, Conformance
from prony.plan import workload as workloads
from prony.plan.workload import Workload
from prony.report.console import Console
from prony.report.delivery import print_model
from prony.server.build import build
from prony.server.catalogue import Catalogue
from prony.server.spec import ServerSpec
from prony_conformance import suite
from prony_conformance.report import as_json, summary_table, table


def check(
    servers: list[str] = Argument(None, help=f"{targets.KINDS}."),
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
    wrong = {result.check for conformance in done for result in conformance.failed}
    if wrong - {START}:
        return ExitCode.NONCONFORMING
    return ExitCode.ENVIRONMENT if wrong else ExitCode.OK


def _tasks(
    named: list[str], every: bool, only: list[str], settings: dict[str, float]
) -> list[tuple[ServerSpec, Workload]]:
    """Each server with each workload to check it under. Raises UsageError, before anything is built."""
    specs = _chosen(named, every)
    tasks: list[tuple[ServerSpec, Workload]] = []
    for spec in specs:
        if not only and not spec.workloads:
            tasks.append((spec, workloads.from_url("/")))
            continue
        names = (
            [name for name in only if name in spec.workloads] if every and only else suite.claimed(spec, only)
        )
        tasks += [(spec, workloads.load(name)) for name in names]
    if not tasks:
        raise UsageError(f"no server offers {' or '.join(only)}; prony servers lists what each offers")
    unknown = set(settings) - {name for _, under in tasks for name in under.settings}
    if unknown:  # the refusal is that of a workload without the setting
        tasks[0][1].with_settings({name: settings[name] for name in unknown})
    return [
        (spec, under.with_settings({key: value for key, value in settings.items() if key in under.settings}))
        for spec, under in tasks
    ]


def _chosen(named: list[str], every: bool) -> list[ServerSpec]:
    if every and named:
        raise UsageError(f"both --all and {', '.join(named)} were given; give one of them")
    if not every:
        if not named:
            raise UsageError("no server was named; name some (prony servers lists them), or give --all")
        known = targets.servers(
            named, instead=f"prony servers check starts it fresh: name {targets.LAUNCHED}"
        )
        return list({server.name: server.launched for server in known}.values())
    specs, faults = Catalogue.load().specs()
    if faults:
        raise faults[0]
    return [spec for spec in specs if spec.workloads]


def _checked(spec: ServerSpec, under: Workload, jdk: str | None) -> Conformance:
    """What the suite finds; a build that fails is a result like another."""
    try:
        built = build([spec], jdk=jdk, on_line=print_build_line)
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
    return suite.check_fresh(built[0], under)
