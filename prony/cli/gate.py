"""`prony gate`: is a candidate build no worse than its base?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prony.cli import gate_plan, options
from prony.cli.command import measures
from prony.cli.common import Common
from prony.cli.gate_output import GateFiles
from prony.cli.launched import AskedTrial


@measures(
    without=(
        "until_clear",
        "max_trials",
        "hosts",
        "band",
        "at_least",
        "quick",
        "share_process",
        "budget",
        "explain",
        "attach",
    ),
    beside_resume=("junit", "markdown"),
    continued=lambda **files: {"also": GateFiles(**files).write},
)
def command(
    servers: list[str] = typer.Argument(
        None,
        metavar="BASE CANDIDATE",
        help="Two builds: folders with a server.yaml, or servers of the catalogue; with --baseline the "
        "candidate alone.",
    ),
    margin: str = typer.Option("3%", "--margin", help="Largest tolerated loss, such as 3%."),
    figures: str = typer.Option(
        gate_plan.FIGURES, "--figures", help="Figures that must not get worse, separated by commas."
    ),
    p99: bool = typer.Option(
        False, "--p99", help="Also p99, at a margin of 20 %: a tail varies more than a rate."
    ),
    budget: str = typer.Option("20m", "--budget", help="The time that trials may take, such as 20m."),
    trials: int = typer.Option(
        gate_plan.FIRST_LOOK, "--trials", help="Number of trials per build before the first look."
    ),
    most_trials: int | None = typer.Option(
        None, "--max-trials", help="Maximum trials per build [default: as many as fit into the budget]."
    ),
    protocol: str | None = typer.Option(
        None,
        "--protocol",
        metavar="WARMUP,RUN",
        help="A fixed warm-up and run, such as 3s,5s, instead of a warm-up until steady; claims no plateau.",
    ),
    baseline: str | None = typer.Option(
        None,
        "--baseline",
        metavar="TAG",
        help="Compare the candidate with stored results with this tag and this host's fingerprint.",
    ),
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML to this file.")
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Write a summary for a pull request, and its SVG."),
    ] = None,
    *,
    asked: AskedTrial,
    common: Common,
) -> int:
    """Is a candidate build no worse than its base by more than a margin? Both in turns, as many fresh
    processes as it takes. Exit codes: 0 no worse, 7 worse, 8 cannot tell within the budget, 3 not measurable
    here.
    """
    from prony.cli import measure

    files = GateFiles(junit, markdown)
    files.check()
    with files.told_of_faults():
        wanted = gate_plan.Wanted(
            figures=gate_plan.figures_of(figures),
            margin=options.share(margin, "--margin"),
            budget_s=options.seconds(budget, "--budget", at_least_s=1.0),
            trials=options.trials(trials),
            most_trials=most_trials,
            protocol=None if protocol is None else gate_plan.protocol_of(protocol),
            baseline=baseline,
            p99=p99,
        )
        plan = gate_plan.plan_of(servers or [], wanted, asked, common)
        return measure.run(plan, common, also=files.write)
