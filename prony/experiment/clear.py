"""Are more trials needed? The stated rule for adding blocks until every pair is clear, or a gate decided.
Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Protocol

from prony.compare import MARGINS, Claim, Later, Looks, Margins, Sample, compare
from prony.compare.noninferiority import Asked, Change, Changes, changes, changes_from_earlier
from prony.compare.summary import half_width
from prony.evidence.trial import Evidence, TrialRecord
from prony.judge.checks.steady import SteadyWindowLimits
from prony.judge.drift import coming, is_asked, level_stretch, series_of
from prony.judge.figures import FIGURE
from prony.judge.finding import BUDGET_OF, Judgement
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad, Load
from prony.plan.part import GateTest, Part

LEAST_NEED = 1e-6
"""Of a pair with a server of which no trial counts, or one that is not clear for another reason than its
interval: what can be told comes first.
"""
CLOSED_FIGURE = "requests_per_s"
OPEN_FIGURE = "p99_ms"
"""What the question is about where the rate is given, or users pause."""


def compared_figure(load: Load) -> str:
    """What servers under this load are compared by before anything else."""
    capacity = isinstance(load, ClosedLoad) and load.think.kind == "none"
    return CLOSED_FIGURE if capacity else OPEN_FIGURE


def sample(record: TrialRecord, judgement: Judgement, figures: Mapping[str, float], figure: str) -> Sample:
    """One figure of one trial as the comparison takes it, with what may bend it, and why it is missing."""
    value = figures.get(figure)
    first = next(iter(judgement.not_conforming), None)
    why = record.failure or ("" if first is None else f"{first.check}: {first.reason}")
    if value is None and not why:
        few = judgement.finding("samples")
        why = f"{figure} was not measured" + ("" if few is None else f": {few.reason}")
    return Sample(
        server=record.server,
        block=record.block,
        value=value,
        conforms=record.failure is None and judgement.conforms,
        why=why,
        host=record.fingerprint_key,
        position=record.position,
        budget={line.finding.check: line.bias for line in judgement.budget(figure)},
    )


def later(
    trials: Mapping[str, Sequence[Evidence]],
    figure: str,
    limits: SteadyWindowLimits,
) -> Later | None:
    """Residual drift of a figure in these trials, by server; None where no plateau is claimed, or the
    figure does not move with a plateau.
    """
    every = [one for mine in trials.values() for one in mine]
    if not every or not all(is_asked(one) for one in every):
        return None
    series = series_of(every[0].load).get(BUDGET_OF.get(figure, figure))
    if series is None:
        return None
    which, sign = series
    horizon_s = limits.steady_horizon_s
    levels = {
        server: [level_stretch(one, limits.steady, which) for one in mine] for server, mine in trials.items()
    }
    seen = [one.row_s * one.logs.size for mine in levels.values() for one in mine if one is not None]
    return Later(
        horizon_s=horizon_s,
        coming={server: coming(mine, horizon_s) for server, mine in levels.items() if mine},
        sign=sign,
        seen_s=fmean(seen) if seen else 0.0,
    )


class Watch(Protocol):
    """Collects what ended and says, before each block, whether its servers need another one."""

    decided: str
    """What holds when they need none, for a reader."""

    def add(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> None:
        """Take a trial into account; controls take no part, what does not conform is known and has no
        figure.
        """

    def need(self) -> float:
        """How wide the widest interval is that is not clear yet, relative to what is asked: 0 where no
        further block is needed, infinite where there is no interval yet.
        """


@dataclass(slots=True)
class Ended:
    """The trials that ended, as comparisons take them: samples by figure, and the evidence of those that
    conform.
    """

    figures: Sequence[str]
    samples: dict[str, list[Sample]] = field(init=False)
    conforming: dict[tuple[str, int], Evidence] = field(default_factory=dict)
    """By server and block."""
    limits: SteadyWindowLimits = field(default_factory=SteadyWindowLimits)

    def __post_init__(self) -> None:
        self.samples = {figure: [] for figure in self.figures}

    def add(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> None:
        """As `Watch.add`. A trial that was run again stands in for the earlier one."""
        if record.kind != "trial":
            return
        place = (record.server, record.block)
        for figure, samples in self.samples.items():
            samples[:] = [s for s in samples if (s.server, s.block) != place]
            samples.append(sample(record, judgement, figures, figure))
        self.conforming.pop(place, None)
        self.limits = SteadyWindowLimits.among(judgement.limits)
        if record.failure is None and judgement.conforms:
            self.conforming[place] = record.evidence

    def later(self, figure: str) -> Later | None:
        """Residual drift of a figure, by server."""
        by_server: dict[str, list[Evidence]] = {}
        for (server, _), evidence in self.conforming.items():
            by_server.setdefault(server, []).append(evidence)
        return later(by_server, figure, self.limits)


@dataclass(slots=True)
class UntilClear:
    """Until every pair of these servers is clear in one figure."""

    servers: Sequence[str]
    looks: Looks
    figure: str = CLOSED_FIGURE
    margins: Margins = MARGINS
    decided: str = "every pair is clear"
    ended: Ended = field(init=False)

    def __post_init__(self) -> None:
        self.ended = Ended((self.figure,))

    @property
    def samples(self) -> Sequence[Sample]:
        """Of the figure, in the order in which they ended."""
        return self.ended.samples[self.figure]

    def add(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> None:
        self.ended.add(record, judgement, figures)

    def need(self) -> float:
        """Half of the widest interval of a pair that is not clear ÷ the band, on the log scale; of a single
        server that of its figure.
        """
        found = compare(
            self.samples,
            self.figure,
            servers=self.servers,
            looks=self.looks,
            margins=self.margins,
        )
        band = math.log1p(self.margins.band)
        if len(self.servers) < 2:
            half = half_width(found.servers[0].values) if found.servers else math.inf
            return half / band if half > band else 0.0
        lost = {
            one.server for one in found.servers if not one.values and len(one.missing) >= self.looks.first
        }
        needs = [
            LEAST_NEED
            if {pair.a, pair.b} & lost or (pair.settles is not None and pair.settles.what != "blocks")
            else max(LEAST_NEED, pair.spread / band)
            for pair in found.pairs
            if pair.claim is Claim.OPEN
        ]
        return max(needs, default=0.0)


@dataclass(slots=True)
class UntilDecided:
    """Until it is known whether a candidate is worse than its base, or that it cannot be known here."""

    gate: GateTest
    looks: Looks
    decided: str = "the gate has its outcome"
    ended: Ended = field(init=False)

    def __post_init__(self) -> None:
        self.ended = Ended(self.gate.figures)

    def add(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> None:
        self.ended.add(record, judgement, figures)

    def need(self) -> float:
        found = changes_of(self.gate, self.ended.samples, self.looks, self.ended.later)
        return math.inf if found.change is Change.CANNOT_TELL else 0.0


def changes_of(
    gate: GateTest,
    samples: Mapping[str, Sequence[Sample]],
    looks: Looks | None,
    later_of: Callable[[str], Later | None],
    *,
    ended: bool = False,
) -> Changes:
    """What the trials of a gate come to: while it runs, and in its report. `looks`: None with a baseline.
    `later_of`: residual drift of a figure.
    """
    directions = {figure: bool(FIGURE[figure].higher_is_better) for figure in gate.figures}
    asked = Asked(gate.base, gate.candidate, directions, gate.margin, gate.margins)
    if gate.baseline is not None or looks is None:
        stored = gate.baseline.experiments if gate.baseline is not None else ()
        experiments = {figure: [one.values.get(figure, ()) for one in stored] for figure in gate.figures}
        return changes_from_earlier(samples, asked, experiments)
    return changes(samples, asked, looks, later=later_of, ended=ended)


def questions(part: Part, cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Cells that answer the same question, by its name: all servers under one workload and load, or in a
    comparison under the load that each has (such as a share of its own capacity).
    """
    if cells and part.shape == "comparison" and len(cells) == len({cell.server for cell in cells}):
        return {"": list(cells)}
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(f"{cell.trial.workload.name}, {cell.trial.load_name}", []).append(cell)
    return found


def watches(part: Part, cells: Sequence[Cell]) -> dict[str, Watch]:
    """Cell -> what watches it: one for the servers of each question. Empty for a part with a
    fixed number of trials.
    """
    if part.until_clear is None:
        return {}
    found: dict[str, Watch] = {}
    for group in questions(part, cells).values():
        looks = Looks(group[0].trials, part.until_clear)
        watch: Watch
        if part.gate is not None:
            watch = UntilDecided(part.gate, looks)
        else:
            servers = tuple(cell.server for cell in group)
            # Of a server against itself every further trial tells something.
            band = part.band if part.aa is None else LEAST_NEED
            margins = Margins(band, part.at_least)
            watch = UntilClear(servers, looks, compared_figure(group[0].trial.load), margins)
        found |= {cell.id: watch for cell in group}
    return found
