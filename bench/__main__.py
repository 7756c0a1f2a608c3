"""The command `python -m bench` (`make bench`)."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.cases import CASES, chosen
from bench.session import Outcome, Plan, chosen_tools, run
from bench.summary import memory
from bench.table import Sheet, markdown, print_sheets, sheets
from bench.tools import TOOLS
from prony.errors import ExitCode, PronyError, UsageError
from prony.host.fingerprint import fingerprint
from prony_serve.host_facts import describe

ROUNDS, QUICK_ROUNDS = 5, 3
SECONDS, QUICK_SECONDS = 2, 1
WIDE = 170
"""Columns of text outside a terminal."""


def command(
    rounds: Annotated[int | None, typer.Option(help=f"Interleaved rounds (default {ROUNDS}).")] = None,
    seconds: Annotated[
        int | None, typer.Option(help=f"Length of a run in whole seconds (default {SECONDS}).")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help=f"Only this case; repeatable: {', '.join(c.name for c in CASES)}."),
    ] = None,
    tools: Annotated[
        str, typer.Option(help=f"Only these tools, comma-separated: {','.join(tool.name for tool in TOOLS)}.")
    ] = "",
    quick: Annotated[
        bool,
        typer.Option(help=f"About two minutes: {QUICK_ROUNDS} rounds of {QUICK_SECONDS} s, fewer cases."),
    ] = False,
    markdown_file: Annotated[
        Path | None,
        typer.Option("--markdown", help="Also write the tables to this file, for docs/benchmarks.md."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the order (default: random, printed).")] = None,
) -> None:
    """CPU time per request of load generators, interleaved."""
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    plan = Plan(
        cases=chosen(only or [], quick=quick),
        tools=chosen_tools([name.strip() for name in tools.split(",") if name.strip()]),
        rounds=_within(rounds or (QUICK_ROUNDS if quick else ROUNDS), "--rounds", 1000),
        seconds=_within(seconds or (QUICK_SECONDS if quick else SECONDS), "--seconds", 3600),
        seed=secrets.randbelow(2**31) if seed is None else seed,
    )
    if markdown_file is not None and not markdown_file.parent.is_dir():
        raise UsageError(f"--markdown is {markdown_file}; the folder {markdown_file.parent} does not exist")
    console.print(
        f"{len(plan.cases)} cases, {plan.rounds} rounds in random order (seed {plan.seed}), "
        f"{plan.seconds} s a run, of which {plan.warm_s:.2g} s warm-up"
    )
    outcome = run(plan, lambda text: print(text, file=sys.stderr, flush=True))
    tables = sheets(outcome.rows, memory(outcome.rows))
    print_sheets(console, tables)
    for line in _context(plan, outcome):
        console.print(line, markup=False, highlight=False)
    if markdown_file is not None:
        markdown_file.write_text(_document(plan, outcome, tables), encoding="utf-8")


def _within(value: int, what: str, most: int) -> int:
    if not 1 <= value <= most:
        raise UsageError(f"{what} is {value}; expected 1 to {most}")
    return value


def _made_by(plan: Plan) -> str:
    """The command that repeats this run."""
    parts = ["python -m bench", f"--rounds {plan.rounds}", f"--seconds {plan.seconds}", f"--seed {plan.seed}"]
    parts += [f"--only {case.name}" for case in plan.cases] if len(plan.cases) < len(CASES) else []
    parts += [f"--tools {','.join(plan.tools)}"] if len(plan.tools) < len(TOOLS) else []
    return " ".join(parts)


def _context(plan: Plan, outcome: Outcome) -> list[str]:
    host = [
        f"{label}: {value}"
        for label, value in describe(fingerprint(outcome.versions))
        if label not in ("Host", *outcome.versions)
    ]
    versions = ", ".join(f"{name} {version}" for name, version in outcome.versions.items())
    return [
        f"Made by: {_made_by(plan)}",
        f"Tools: {versions}",
        f"Tool on CPU {outcome.client_cpu}, over loopback to prony-engine serve (epoll) "
        f"on CPU {outcome.server_cpu}, or to nghttpd where a table says so",
        *host,
    ]


def _document(plan: Plan, outcome: Outcome, found: list[Sheet]) -> str:
    context = "\n".join(f"- {line}" for line in _context(plan, outcome))
    return f"{context}\n\n{markdown(found)}"


def main() -> None:
    """Turns each fault into one sentence and its documented exit code."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(command)
    try:
        app(prog_name="python -m bench")
    except PronyError as fault:
        print(f"bench: {fault}", *([fault.details] if fault.details else []), sep="\n", file=sys.stderr)
        raise SystemExit(int(fault.exit_code)) from None
    except KeyboardInterrupt:
        print("bench: interrupted, nothing stored", file=sys.stderr)
        os._exit(int(ExitCode.INTERRUPTED))


if __name__ == "__main__":
    main()
