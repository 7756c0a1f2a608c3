"""`prony gate`: is a candidate build no worse than its base?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from prony.cli import options
from prony.cli.command import measures
from prony.cli.common import Common, Duet
from prony.cli.targets import KINDS, LAUNCHED, Server, TrialOptions, server
from prony.errors import PronyError, UsageError

if TYPE_CHECKING:
    from prony.plan.cell import Cell
    from prony.plan.part import Baseline
    from prony.plan.plan import Plan
    from prony.plan.trial import TrialPlan
    from prony.report.result import ResultView


FIGURES = "requests_per_s,cpu_us_per_request"
P99, P99_MARGIN = "p99_ms", 0.2
SHORT_NAMES = {"cpu_us_per_request": "server_cpu_us_per_request"}
FIRST_LOOK = 5
"""Blocks before the first look: with three or four an interval is several times as wide."""
BASE, CANDIDATE = "base", "candidate"


@dataclass(frozen=True, slots=True)
class Trial(TrialOptions):
    """Of a gate, whose trials are short always."""

    window: Annotated[
        str | None, Option("--window", help="Measured part of a trial, such as 10s [default: 10s].")
    ] = None


@measures(
    without=(
        "until_clear", "max_trials", "hosts", "band", "at_least",
        "quick", "share_process", "budget", "explain", "attach",
    ),
    beside_resume=("junit", "markdown"),
    continued=lambda **files: {"also": GateFiles(**files).write},
)  # fmt: skip
def command(
    servers: list[str] = Argument(
        None,
        metavar="BASE CANDIDATE",
        help=f"Two builds: {KINDS}; with --baseline the candidate alone.",
    ),
    margin: str = Option("3%", "--margin", help="Largest tolerated loss, such as 3%."),
    figures: str = Option(FIGURES, "--figures", help="Figures that must not get worse, separated by commas."),
    p99: bool = Option(False, "--p99", help="Also p99, at a margin of 20 %: a tail varies more than a rate."),
    budget: str = Option("20m", "--budget", help="Time limit of all trials, such as 20m."),
    trials: int = Option(FIRST_LOOK, "--trials", help="Number of trials per build before the first look."),
    most_trials: int | None = Option(
        None, "--max-trials", help="Maximum trials per build [default: as many as fit into the budget]."
    ),
    protocol: str | None = Option(
        None,
        "--protocol",
        metavar="WARMUP,RUN",
        help="A fixed warm-up and run, such as 3s,5s, instead of a warm-up until steady; claims no plateau.",
    ),
    duet: Duet = None,
    baseline: str | None = Option(
        None,
        "--baseline",
        metavar="TAG",
        help="Compare the candidate with stored results with this tag and this host's fingerprint.",
    ),
    junit: Annotated[
        Path | None, Option("--junit", metavar="FILE", help="Write JUnit XML to this file.")
    ] = None,
    markdown: Annotated[
        Path | None,
        Option("--markdown", metavar="FILE", help="Write a summary for a pull request, and its SVG."),
    ] = None,
    *,
    typed: Trial,
    common: Common,
) -> int:
    """Is a candidate build no worse than its base by more than a margin? Interleaves fresh processes
    until that is decided. Exit codes: 0 no worse, 7 worse, 8 cannot tell within the budget, 3 not measurable
    here.
    """
    from prony.cli import measure

    files = GateFiles(junit, markdown)
    files.check()
    with files.reporting_faults():
        wanted = GateOptions(
            figures=figures_of(figures),
            margin=options.share(margin, "--margin"),
            budget_s=options.seconds(budget, "--budget", at_least_s=1.0),
            trials=options.trials(trials),
            most_trials=most_trials,
            protocol=None if protocol is None else protocol_of(protocol),
            baseline=baseline,
            p99=p99,
            duet=duet,
        )
        plan = plan_of(servers or [], wanted, typed, common)
        return measure.run(plan, common, also=files.write)


@dataclass(frozen=True, slots=True)
class GateFiles:
    """Paths of the JUnit and Markdown files; None: not requested."""

    junit: Path | None = None
    markdown: Path | None = None

    @property
    def drawing(self) -> Path | None:
        """Path of the SVG that the Markdown embeds."""
        return None if self.markdown is None else self.markdown.with_suffix(".svg")

    def check(self) -> None:
        """Raises UsageError for an unwritable file, before the first trial."""
        for option, file in (("--junit", self.junit), ("--markdown", self.markdown)):
            if file is not None:
                options.writable(file, option)
        if self.drawing is not None and self.drawing == self.markdown:
            raise UsageError(
                f"--markdown {self.markdown} is the path of its drawing; name a file such as gate.md"
            )
        if self.drawing is not None:
            options.writable(self.drawing, "--markdown")

    def write(self, view: ResultView) -> None:
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
    def reporting_faults(self) -> Iterator[None]:
        """Writes an error that ends the command to the files, too, for the build server."""
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


@dataclass(frozen=True, slots=True)
class GateOptions:
    """The checked options."""

    figures: tuple[str, ...]
    margin: float
    budget_s: float
    trials: int
    most_trials: int | None
    protocol: tuple[float, float] | None
    baseline: str | None
    p99: bool = False
    duet: bool | None = None
    """None: where turns are the better design."""

    @property
    def every_figure(self) -> tuple[str, ...]:
        """The figures, with p99 if --p99 was given."""
        return self.figures if not self.p99 or P99 in self.figures else (*self.figures, P99)

    @property
    def margins(self) -> dict[str, float]:
        """Margins of the figures that have their own."""
        return {P99: P99_MARGIN} if self.p99 else {}

    def looks(self, block_s: float) -> int:
        """Blocks before the last look, ignoring the budget's end. Raises UsageError."""
        from prony.plan.part import MOST_LOOKS

        most = self.most_trials
        if most is None:
            most = max(self.trials, min(MOST_LOOKS, int(self.budget_s // block_s)))
        if not 3 <= self.trials <= most <= MOST_LOOKS:
            raise UsageError(
                f"the first look is after {self.trials} blocks (--trials) and the last after {most} "
                f"(--max-trials); expected at least 3, and the last look at or after the first and at most "
                f"{MOST_LOOKS}"
            )
        return most


def figures_of(text: str) -> tuple[str, ...]:
    """The figures by their names in results. Raises UsageError."""
    from prony.judge.figures import FIGURE
    from prony.plan.yamlfile import nearest

    named = [word.strip() for word in text.split(",") if word.strip()]
    figures = [SHORT_NAMES.get(word, word) for word in named]
    known = [name for name, figure in FIGURE.items() if figure.higher_is_better is not None]
    for word, name in zip(named, figures, strict=True):
        if name not in FIGURE:
            raise UsageError(
                f"--figures: unknown figure '{word}'{nearest(word, [*SHORT_NAMES, *known])}; known figures: "
                f"{', '.join((*SHORT_NAMES, *known))}"
            )
        if name not in known:
            raise UsageError(f"--figures: '{word}' has no worse direction; omit it")
    if not figures or len(set(figures)) < len(figures):
        raise UsageError(f"--figures is '{text}'; expected figures such as {FIGURES}, each once")
    return tuple(figures)


def protocol_of(text: str) -> tuple[float, float]:
    """Seconds of warm-up and run. Raises UsageError."""
    warm, comma, run = text.partition(",")
    if not comma:
        raise UsageError(f"--protocol is '{text}'; expected a warm-up and a run, such as 3s,5s")
    return options.seconds(warm, "--protocol"), options.seconds(run, "--protocol", at_least_s=1.0)


def plan_of(named: list[str], wanted: GateOptions, typed: TrialOptions, common: Common) -> Plan:
    """Base and candidate interleaved, or the candidate against stored results. Raises UsageError."""
    expected = 1 if wanted.baseline is not None else 2
    if len(named) != expected:
        what = "the candidate alone (its base is stored)" if expected == 1 else "a base and a candidate"
        raise UsageError(
            f"{len(named)} servers given; expected {what}, such as prony gate "
            f"{'./candidate --baseline main' if expected == 1 else './base ./candidate'}, or --resume ID"
        )
    instead = f"prony gate compares fresh processes: name {LAUNCHED}"
    servers = [server(word, instead=instead) for word in named]
    if wanted.baseline is not None and wanted.duet:
        raise UsageError("--duet needs a base to measure: name it in place of --baseline")
    if wanted.baseline is not None:
        return _against_stored(servers[0], _trial(servers, wanted, typed), wanted, wanted.baseline, common)
    base, candidate = names(*(s.name for s in servers))
    servers = [servers[0].known_as(base), servers[1].known_as(candidate)]
    return _in_turns(servers, _trial(servers, wanted, typed), wanted, common)


def _trial(servers: list[Server], wanted: GateOptions, typed: TrialOptions) -> TrialPlan:
    from prony.plan.trial import gate_trial, protocol

    trial = typed.trial(servers, gate_trial)
    if wanted.protocol is None:
        return trial
    if typed.window is not None or typed.warm_up_cap is not None:
        raise UsageError("--protocol sets the length of warm-up and run; omit --window and --warm-up-cap")
    return protocol(trial, *wanted.protocol)


def _in_turns(servers: list[Server], trial: TrialPlan, wanted: GateOptions, common: Common) -> Plan:
    from prony.experiment.stored import timed
    from prony.plan.turns import extra_s
    from prony.store import Store

    cells = [server.cell(trial, wanted.trials) for server in servers]
    base = servers[0].name
    wanted.looks(wanted.budget_s)  # refuses before there is a store
    wanted = replace(wanted, duet=common.in_turns(_plan(wanted, cells, base, base, common), wanted.duet))
    known = timed(_plan(wanted, cells, base, base, common), Store.open(common.db))
    extra = extra_s(trial.measured_s) if wanted.duet else 0.0
    block_s = sum(cell.trial_s + extra for cell in known.cells)
    plan = _plan(wanted, cells, base, base, common, until_clear=wanted.looks(block_s))
    first_look_s = wanted.trials * block_s
    if first_look_s <= wanted.budget_s:
        return plan
    change = (
        f"budget of {wanted.budget_s / 60:.3g} min: the first look is after {wanted.trials} blocks, about "
        f"{first_look_s / 60:.1f} min; --budget {math.ceil(first_look_s / 60)}m holds them"
    )
    return plan.model_copy(update={"changes": (change,)})


def _plan(
    wanted: GateOptions, cells: list[Cell], base: str, against: str, common: Common,
    *, baseline: Baseline | None = None, until_clear: int | None = None,
) -> Plan:  # fmt: skip
    from prony.plan.part import GateTest
    from prony.plan.plan import one_part

    workload, candidate = cells[0].trial.workload, cells[-1].server
    gate = GateTest(
        base=base,
        candidate=candidate,
        figures=wanted.every_figure,
        margin=wanted.margin,
        margins=wanted.margins,
        baseline=baseline,
    )
    return one_part(
        "gate",
        f"{candidate} against {against}: {workload.title or workload.name}",
        cells,
        seed=options.seed(common.seed),
        shape="gate",
        gate=gate,
        until_clear=until_clear,
        budget_s=wanted.budget_s,
        duet=bool(wanted.duet),
    )


def names(base: str, candidate: str) -> tuple[str, str]:
    """Display names; builds of the same name get their roles."""
    return (base, candidate) if base != candidate else (f"{base}@{BASE}", f"{candidate}@{CANDIDATE}")


def _against_stored(named: Server, trial: TrialPlan, wanted: GateOptions, tag: str, common: Common) -> Plan:
    from prony.experiment.stored import stored_base
    from prony.experiment.testbed import prepare
    from prony.store import Store
    from prony.targets import LaunchedServer

    cell = named.cell(trial, wanted.trials)
    if wanted.most_trials is not None:
        raise UsageError("--max-trials needs a base to measure; with --baseline use --trials")
    if wanted.trials * cell.trial_s > wanted.budget_s:
        raise UsageError(
            f"--budget is {wanted.budget_s:g} s, and {wanted.trials} trials take about "
            f"{wanted.trials * cell.trial_s:.0f} s; give a longer --budget, or fewer --trials"
        )
    services = LaunchedServer(named.launched).has_services
    here = prepare(common.server_cpus, common.client_cpus, services=services).fingerprint
    store = Store.open(common.db)
    try:
        base, stored = stored_base(store, tag, here, _as_measured(cell, common), wanted.every_figure)
    finally:
        store.close()
    _, candidate = names(base, named.name)
    shown = base if base != named.name else f"{base}@{tag}"
    cells = [named.known_as(candidate).cell(trial, wanted.trials)]
    return _plan(wanted, cells, shown, f"what is tagged '{tag}'", common, baseline=stored)


def _as_measured(cell: Cell, common: Common) -> Cell:
    """The cell with the common options applied, as stored plans have them."""
    from prony.plan.plan import one_part

    return common.applied(one_part("gate", "", [cell], seed=0)).cells[0]
