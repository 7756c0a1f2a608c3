"""`prony servers build`: builds servers without starting any, so that the first experiment need not wait for
it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from prony.errors import EnvironmentFault, ExitCode

if TYPE_CHECKING:
    from prony.server.build import Built
    from prony.server.catalogue import Catalogue
    from prony.server.spec import ServerSpec


def command(
    servers: list[str] = typer.Argument(
        None,
        help="NAME, NAME:VARIANT, or a folder with a server.yaml [default: every server of the catalogue].",
    ),
    jdk: str | None = typer.Option(
        None, "--jdk", help="JDK to use, a major version or a folder [default: what each server prefers]."
    ),
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
            (built,) = build(
                [spec], jdk=jdk, on_line=lambda name, line: print(f"prony: {name}: {line}", file=sys.stderr)
            )
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
    """Every server, and those of its variants that are built otherwise or for other JDKs. Raises the first
    fault of a file.
    """
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
