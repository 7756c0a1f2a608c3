"""`prony selftest`: does the instrument notice when it is lied to, and does it leave honest runs alone?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from prony.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from prony.selftest.lies.prove import Told


def command(
    numbers: list[int] | None = typer.Argument(
        None, help="Which entries of the catalogue [default: all]; --list names them."
    ),
    list_only: bool = typer.Option(False, "--list", help="Name the entries, and run nothing."),
    table: bool = typer.Option(
        False, "--table", help="Run wrk and ab on the same set-ups, too, and print a Markdown table."
    ),
    honest: int = typer.Option(
        0, "--honest", help="Instead: so many honest short trials; which checks accuse them, how often?"
    ),
    statistics: bool = typer.Option(
        False, "--statistics", help="Instead: coverage, false differences and power of the comparison."
    ),
    server: str | None = typer.Option(
        None, "--server", help="With --honest: a server of the catalogue beside the reference."
    ),
) -> int:
    """Stage every lie of the catalogue and its honest twin on this machine: is the lie named, the twin left
    alone? Exit code 1 when not.
    """
    from prony.host.affinity import pin_self
    from prony.host.limits import raise_descriptors
    from prony.host.partition import partition
    from prony.selftest.lies.book import ALL, prove_entry, titles
    from prony.selftest.lies.honest import honest_table, honest_trials
    from prony.selftest.lies.prove import markdown

    if statistics:
        from prony.selftest.tables import Rounds, statistics_tables

        typer.echo(statistics_tables(Rounds(), lambda line: typer.echo(line, err=True)), nl=False)
        return ExitCode.OK
    if honest < 0 or honest > 1000:
        raise UsageError(f"--honest is {honest}; expected 1 to 1000 trials")
    if list_only:
        for number, title in titles():
            typer.echo(f"{number:>3}  {title}")
        return ExitCode.OK
    if server is not None and not honest:
        raise UsageError("--server goes with --honest; leave it out")
    chosen = sorted(set(numbers or ALL))
    unknown = [number for number in chosen if number not in ALL]
    if unknown:
        raise UsageError(f"there is no entry {unknown[0]}; prony selftest --list names them")
    raise_descriptors()
    pin_self(partition().client)
    if honest:
        trials = honest_trials(honest, server, lambda line: typer.echo(line, err=True))
        typer.echo(honest_table(trials))
        return ExitCode.OK
    told: list[Told] = []
    for number in chosen:
        told.append(prove_entry(number, tools=table))
        typer.echo(_line(told[-1]), err=table)
    if table:
        typer.echo(markdown(told))
    failed, left_out = sum(bool(t.faults) for t in told), sum(bool(t.lacking) for t in told)
    typer.echo(
        f"{len(told) - failed - left_out} of {len(told)} named and their twins left alone"
        + (f", {failed} failed" if failed else "")
        + (f", {left_out} could not be put on here" if left_out else ""),
        err=table,
    )
    return ExitCode.DEFECT if failed else ExitCode.OK


def _line(told: Told) -> str:
    if told.lacking:
        return f"{told.number:>3}  {told.name}: left out, it needs {told.lacking}"
    lines = [
        f"{told.number:>3}  {told.name}: {'FAILED' if told.faults else 'named'}",
        f"       lie:  {told.said}",
    ]
    if told.twin:
        lines.append(f"       twin: {told.twin}")
    return "\n".join([*lines, *(f"       FAULT: {fault}" for fault in told.faults)])
