"""`prony selftest`: are injected faults found, and do the printed bounds hold the truth?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from prony.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from prony.selftest.faults.single_trial import EntryResult


def command(
    numbers: list[int] | None = typer.Argument(
        None, help="Numbers of the entries to run [default: all]; see --list."
    ),
    list_only: bool = typer.Option(False, "--list", help="List the entries and run nothing."),
    table: bool = typer.Option(
        False, "--table", help="Run wrk and ab on the same set-ups too and print a Markdown table."
    ),
    honest: int = typer.Option(
        0,
        "--honest",
        metavar="N",
        help="Instead: N short clean trials: what conforms, how wide are the bounds?",
    ),
    statistics: bool = typer.Option(
        False,
        "--statistics",
        help="Instead: simulate coverage, false differences and power of the comparison.",
    ),
    server: str | None = typer.Option(
        None, "--server", help="With --honest: a server of the catalogue beside the reference server."
    ),
) -> int:
    """Run every injected fault of the catalogue and its clean run on this host: is the fault found, and does
    the clean run conform? Exit code 1 when not.
    """
    from prony.host.affinity import pin_self
    from prony.host.partition import partition
    from prony.host.resource_limits import raise_descriptors
    from prony.selftest.faults.clean_trials import clean_trials, clean_trials_table
    from prony.selftest.faults.entries import ALL, run_number, titles
    from prony.selftest.faults.single_trial import markdown

    if statistics:
        from prony.selftest.tables import Repetitions, statistics_tables

        typer.echo(statistics_tables(Repetitions(), lambda line: typer.echo(line, err=True)), nl=False)
        return ExitCode.OK
    if honest < 0 or honest > 1000:
        raise UsageError(f"--honest is {honest}; expected 1 to 1000 trials")
    if list_only:
        for number, title in titles():
            typer.echo(f"{number:>3}  {title}")
        return ExitCode.OK
    if server is not None and not honest:
        raise UsageError("--server needs --honest N")
    chosen = sorted(set(numbers or ALL))
    missing = [number for number in chosen if number not in ALL]
    if missing:
        raise UsageError(f"no entry {missing[0]} in the catalogue; prony selftest --list names them")
    raise_descriptors()
    pin_self(partition().client)
    if honest:
        trials = clean_trials(honest, server, lambda line: typer.echo(line, err=True))
        typer.echo(clean_trials_table(trials))
        return ExitCode.OK
    told: list[EntryResult] = []
    for number in chosen:
        told.append(run_number(number, tools=table))
        typer.echo(_line(told[-1]), err=table)
    if table:
        typer.echo(markdown(told))
    failed, left_out = sum(bool(t.failures) for t in told), sum(bool(t.missing) for t in told)
    typer.echo(
        f"{len(told) - failed - left_out} of {len(told)} faults found and not their clean runs"
        + (f", {failed} failed" if failed else "")
        + (f", {left_out} cannot be run on this host" if left_out else ""),
        err=table,
    )
    return ExitCode.DEFECT if failed else ExitCode.OK


def _line(told: EntryResult) -> str:
    if told.missing:
        return f"{told.number:>3}  {told.name}: not run, needs {told.missing}"
    lines = [
        f"{told.number:>3}  {told.name}: {'FAILED' if told.failures else 'found'}",
        f"       fault: {told.reported}",
    ]
    if told.clean:
        lines.append(f"       clean: {told.clean}")
    return "\n".join([*lines, *(f"       FAILED: {reason}" for reason in told.failures)])
