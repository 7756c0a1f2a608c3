"""`prony gate`: is a candidate build no worse than its base?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli import gate_plan, options
from prony.cli.common import Common, measures
from prony.cli.targets import AskedTrial
from prony.errors import PronyError, UsageError

if TYPE_CHECKING:
    from prony.report.result import ResultView


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


@dataclass(frozen=True, slots=True)
class GateFiles:
    """Where to write what; None: not asked for."""

    junit: Path | None = None
    markdown: Path | None = None

    @property
    def drawing(self) -> Path | None:
        """The SVG that the Markdown shows, beside it."""
        return None if self.markdown is None else self.markdown.with_suffix(".svg")

    def check(self) -> None:
        """Raises UsageError when one could not be written, before any time is spent on measuring."""
        for option, file in (("--junit", self.junit), ("--markdown", self.markdown)):
            if file is not None:
                options.writable(file, option)
        if self.drawing is not None and self.drawing == self.markdown:
            raise UsageError(
                f"--markdown names {self.markdown}, where its drawing goes; name a file such as gate.md"
            )
        if self.drawing is not None:
            options.writable(self.drawing, "--markdown")

    def write(self, view: ResultView) -> None:
        """All of them."""
        from prony.report import gate_files
        from prony.report.html import write_text

        if self.junit is not None:
            write_text(gate_files.junit(view), self.junit)
        gate = gate_files.gate_of(view)
        if self.markdown is None or self.drawing is None or gate is None:
            return
        write_text(gate_files.svg(gate), self.drawing)
        write_text(gate_files.markdown(view, self.drawing.name), self.markdown)

    @contextmanager
    def told_of_faults(self) -> Iterator[None]:
        """What ends the command before there is a result stands in the files, too, for the build server."""
        try:
            yield
        except PronyError as fault:
            from prony.report import gate_files
            from prony.report.html import write_text

            if self.junit is not None:
                write_text(gate_files.junit_fault(str(fault)), self.junit)
            if self.markdown is not None:
                write_text(gate_files.markdown_fault(str(fault)), self.markdown)
            raise
