"""From the options of `prony gate` to its plan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prony.cli import options
from prony.cli.targets import LAUNCHED, AskedTrial, Server, server
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.cli.common import Common
    from prony.plan.cell import Cell
    from prony.plan.part import Baseline
    from prony.plan.plan import Plan
    from prony.plan.trial import TrialPlan

FIGURES = "requests_per_s,cpu_us_per_request"
P99, P99_MARGIN = "p99_ms", 0.2
SHORT_NAMES = {"cpu_us_per_request": "server_cpu_us_per_request"}
FIRST_LOOK = 5
"""Blocks before the first look: with three or four an interval is several times as wide."""
BASE, CANDIDATE = "base", "candidate"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options ask, checked one by one."""

    figures: tuple[str, ...]
    margin: float
    budget_s: float
    trials: int
    most_trials: int | None
    protocol: tuple[float, float] | None
    """Seconds of a warm-up and of a run."""
    baseline: str | None
    p99: bool = False
    """Whether p99 is asked for beside the figures, at a margin of its own."""

    @property
    def every_figure(self) -> tuple[str, ...]:
        """With p99 where it is asked for."""
        return self.figures if not self.p99 or P99 in self.figures else (*self.figures, P99)

    @property
    def margins(self) -> dict[str, float]:
        """Of figures with a margin of their own."""
        return {P99: P99_MARGIN} if self.p99 else {}

    def looks(self, block_s: float) -> int:
        """After how many blocks the last look is. Raises UsageError for what makes no plan."""
        from prony.plan.part import MOST_LOOKS

        most = self.most_trials
        if most is None:
            most = min(MOST_LOOKS, int(self.budget_s // block_s))
            if most < self.trials:
                needed_m = math.ceil(self.trials * block_s / 60)
                raise UsageError(
                    f"--budget is {self.budget_s:g} s, and a block of two trials takes about {block_s:.0f} "
                    f"s: {most} blocks, where the first look is after {self.trials}; expected --budget "
                    f"{needed_m}m at least, or shorter trials (--window, --warm-up-cap, --protocol 3s,5s)"
                )
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
    found = [SHORT_NAMES.get(word, word) for word in named]
    known = [name for name, figure in FIGURE.items() if figure.higher_is_better is not None]
    for word, name in zip(named, found, strict=True):
        if name not in FIGURE:
            raise UsageError(
                f"--figures: unknown figure '{word}'{nearest(word, [*SHORT_NAMES, *known])}; known figures: "
                f"{', '.join((*SHORT_NAMES, *known))}"
            )
        if name not in known:
            raise UsageError(f"--figures: '{word}' has no direction that is worse; leave it out")
    if not found or len(set(found)) < len(found):
        raise UsageError(f"--figures is '{text}'; expected figures such as {FIGURES}, each once")
    return tuple(found)


def protocol_of(text: str) -> tuple[float, float]:
    """Seconds of warm-up and run. Raises UsageError."""
    warm, comma, run = text.partition(",")
    if not comma:
        raise UsageError(f"--protocol is '{text}'; expected a warm-up and a run, such as 3s,5s")
    return options.seconds(warm, "--protocol"), options.seconds(run, "--protocol", at_least_s=1.0)


def plan_of(named: list[str], wanted: Wanted, asked: AskedTrial, common: Common) -> Plan:
    """Base and candidate in turns, or the candidate against what is stored. Raises UsageError."""
    expected = 1 if wanted.baseline is not None else 2
    if len(named) != expected:
        what = "the candidate alone (its base is stored)" if expected == 1 else "a base and a candidate"
        raise UsageError(
            f"{len(named)} servers were named; expected {what}, such as prony gate "
            f"{'./candidate --baseline main' if expected == 1 else './base ./candidate'}, or --resume ID"
        )
    instead = f"prony gate compares fresh processes: name {LAUNCHED}"
    servers = [server(one, instead=instead) for one in named]
    if wanted.baseline is not None:
        return _against_stored(servers[0], _trial(servers, wanted, asked), wanted, wanted.baseline, common)
    base, candidate = names(*(one.name for one in servers))
    servers = [servers[0].known_as(base), servers[1].known_as(candidate)]
    return _in_turns(servers, _trial(servers, wanted, asked), wanted, common)


def _trial(servers: list[Server], wanted: Wanted, asked: AskedTrial) -> TrialPlan:
    from prony.plan.trial import gate_trial, protocol

    trial = asked.trial(servers, gate_trial)
    if wanted.protocol is None:
        return trial
    if asked.window is not None or asked.warm_up_cap is not None:
        raise UsageError("--protocol says how long warm-up and run are; leave out --window and --warm-up-cap")
    return protocol(trial, *wanted.protocol)


def _in_turns(servers: list[Server], trial: TrialPlan, wanted: Wanted, common: Common) -> Plan:
    cells = [one.cell(trial, wanted.trials) for one in servers]
    looks = wanted.looks(sum(cell.trial_s for cell in cells))
    return _plan(wanted, cells, servers[0].name, servers[0].name, common, until_clear=looks)


def _plan(
    wanted: Wanted, cells: list[Cell], base: str, against: str, common: Common,
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
    )


def names(base: str, candidate: str) -> tuple[str, str]:
    """As the reader knows them; two builds of one name by their roles."""
    return (base, candidate) if base != candidate else (f"{base}@{BASE}", f"{candidate}@{CANDIDATE}")


def _against_stored(
    named: Server,
    trial: TrialPlan,
    wanted: Wanted,
    tag: str,
    common: Common,
) -> Plan:
    from prony.experiment.stored import stored_base
    from prony.experiment.testbed import prepare
    from prony.store import Store
    from prony.targets import LaunchedServer

    cell = named.cell(trial, wanted.trials)
    if wanted.most_trials is not None:
        raise UsageError("--max-trials goes with a base that is measured; with --baseline use --trials")
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
    """The cell as the options that every command has change it, which stored ones have in their plans."""
    from prony.plan.plan import one_part

    return common.applied(one_part("gate", "", [cell], seed=0)).cells[0]
