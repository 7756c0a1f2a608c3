"""`prony selftest`: injected faults and their clean runs; coverage of the printed bounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from prony.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from prony_selftest.faults.single_trial import EntryResult


def command(
    numbers: list[int] | None = typer.Argument(
        None, help="Numbers of the entries to run [default: all]; see --list."
    ),
    list_only: bool = typer.Option(False, "--list", help="List entries and sections, and run nothing."),
    section: str | None = typer.Option(
        None, "--section", metavar="NAME", help="Instead: print the tables of a section (docs/truth.md)."
    ),
    rounds: int = typer.Option(
        100,
        "--rounds",
        metavar="PERCENT",
        help="With a simulated section: per cent of the usual number of rounds.",
    ),
    runs: int | None = typer.Option(
        None, "--runs", metavar="N", help="With the sections duet, gate, honest and staged: number of runs."
    ),
    server: str | None = typer.Option(
        None,
        "--server",
        help="With --section honest: a server of the catalogue besides the reference server.",
    ),
    write: Path | None = typer.Option(
        None, "--write", metavar="FILE", help="With --section: fills docs/results/truth/NAME.md."
    ),
) -> int:
    """Run every injected fault of the catalogue and its clean run on this host. Exit code 1 if a fault is not
    detected or a clean run does not conform.
    """
    from prony.host.affinity import pin_self
    from prony.host.partition import partition
    from prony.host.resource_limits import raise_descriptors
    from prony_selftest.faults.entries import run_number, titles
    from prony_selftest.sections import SECTIONS, SectionRequest, tables, written

    if list_only:
        for number, title in titles():
            typer.echo(f"{number:>3}  {title}")
        typer.echo(f"sections: {', '.join(SECTIONS)}")
        return ExitCode.OK
    if section is not None:
        if rounds < 1 or (runs is not None and runs < 1):
            raise UsageError("--rounds and --runs must be at least 1")
        if numbers and section != "catalogue":
            raise UsageError(f"numbers of entries need --section catalogue, not {section}")
        request = SectionRequest(section, rounds, runs, server, _chosen(numbers))
        if write is not None:
            written(request, write, _say)
            return ExitCode.OK
        text = ""
        try:
            for so_far in tables(request, _say):
                text = so_far
        finally:
            typer.echo(text, nl=False)
        return ExitCode.OK
    if server is not None or write is not None or runs is not None:
        raise UsageError("--server, --runs and --write need --section NAME")
    chosen = _chosen(numbers)
    raise_descriptors()
    pin_self(partition().client)
    results: list[EntryResult] = []
    for number in chosen:
        results.append(run_number(number))
        typer.echo(_line(results[-1]))
    failed, left_out = sum(bool(r.failures) for r in results), sum(bool(r.missing) for r in results)
    typer.echo(
        f"{len(results) - failed - left_out} of {len(results)} faults detected without a false alarm"
        + (f", {failed} failed" if failed else "")
        + (f", {left_out} cannot be run on this host" if left_out else "")
    )
    return ExitCode.DEFECT if failed else ExitCode.OK


def _chosen(numbers: list[int] | None) -> tuple[int, ...]:
    from prony_selftest.faults.entries import ALL

    missing = sorted(set(numbers or ()).difference(ALL))
    if missing:
        raise UsageError(f"no entry {missing[0]} in the catalogue; see prony selftest --list")
    return tuple(sorted(set(numbers or ALL)))


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _line(result: EntryResult) -> str:
    if result.missing:
        return f"{result.number:>3}  {result.name}: not run, needs {result.missing}"
    lines = [
        f"{result.number:>3}  {result.name}: {'FAILED' if result.failures else 'detected'}",
        f"       fault: {result.reported}",
    ]
    if result.clean:
        lines.append(f"       clean: {result.clean}")
    return "\n".join([*lines, *(f"       FAILED: {reason}" for reason in result.failures)])
