"""Are more trials needed? The stated rule for adding blocks until every pair is clear, or a gate decided.
Pure.

Must not run trials; docs/method.md has the rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from prony.compare import BAND, Looks, Pair, Sample, Verdict, compare
from prony.compare.noninferiority import Asked, Change, Changes, changes, changes_from_earlier
from prony.compare.summary import half_width
from prony.evidence.trial import TrialRecord
from prony.judge.checks.steady import SteadyWindowLimits
from prony.judge.drift import DRIFTING, bound_of, is_asked, level_stretch
from prony.judge.figures import FIGURE
from prony.judge.finding import Judgement, Status
from prony.judge.outside import disturbed
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad, Load
from prony.plan.part import GateTest, Part
from prony.steady.stretch import Stretch

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


def sample(
    record: TrialRecord, judgement: Judgement, value: float | None, why: str = "judged invalid"
) -> Sample:
    """One figure of one trial as the comparison takes it. `why`: the cause, where the trial is rejected."""
    return Sample(
        server=record.server,
        block=record.block,
        value=value,
        valid=record.failure is None and judgement.verdict is not Status.INVALID,
        why=why,
        host=record.fingerprint_key,
        disturbed=disturbed(judgement, record.failure),
        suspect=judgement.verdict is Status.SUSPECT,
        position=record.position,
    )


class Watch(Protocol):
    """Collects what ended and says, before each block, whether its servers need another one."""

    decided: str
    """What holds when they need none, for a reader."""

    def add(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> None:
        """Take a trial into account; controls take no part, invalid ones are known and do not count."""

    def need(self) -> float:
        """How wide the widest interval is that is not clear yet, relative to what is asked: 0 where no
        further block is needed, infinite where there is no interval yet.
        """


@dataclass(slots=True)
class Ended:
    """The trials that ended, as comparisons take them: samples by figure, and how level the windows were."""

    figures: Sequence[str]
    samples: dict[str, list[Sample]] = field(init=False)
    levels: dict[tuple[str, int], Stretch | None] = field(default_factory=dict)
    """By server and block, of the trials that count."""

    def __post_init__(self) -> None:
        self.samples = {figure: [] for figure in self.figures}

    def add(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> None:
        """As `Watch.add`. A trial that was run again stands in for the earlier one."""
        if record.kind != "trial":
            return
        for figure, samples in self.samples.items():
            samples[:] = [s for s in samples if (s.server, s.block) != (record.server, record.block)]
            samples.append(sample_of(record, judgement, figures, figure))
        counts = record.failure is None and judgement.verdict is not Status.INVALID
        self.levels.pop((record.server, record.block), None)
        if counts and is_asked(record.evidence):
            self.levels[record.server, record.block] = level_stretch(
                record.evidence, SteadyWindowLimits.among(judgement.limits).steady
            )

    def drift(self) -> dict[str, float]:
        """By server, of those whose plateau is asked for: how far from it they may still be."""
        return {
            server: bound_of(level for (of, _), level in self.levels.items() if of == server)
            for server in {server for server, _ in self.levels}
        }


def sample_of(record: TrialRecord, judgement: Judgement, figures: Mapping[str, float], figure: str) -> Sample:
    """As `sample`, with the cause as a finding says it: also of a figure that a trial lacks."""
    worst, value = judgement.worst, figures.get(figure)
    why = record.failure or (f"{worst.check}: {worst.reason}" if worst is not None else "judged invalid")
    made = sample(record, judgement, value, why)
    if value is not None or not made.valid:
        return made
    few = next((f for f in judgement.findings if f.check == "samples" and f.status is not Status.VALID), None)
    lacks = f"{figure} was not measured"
    return made._replace(valid=False, why=lacks if few is None else f"{lacks}: samples: {few.reason}")


@dataclass(slots=True)
class UntilClear:
    """Until every pair of these servers is clear in one figure."""

    servers: Sequence[str]
    looks: Looks
    figure: str = CLOSED_FIGURE
    band: float = BAND
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
        drift = self.ended.drift()
        found = compare(
            self.samples, self.figure, servers=self.servers, looks=self.looks, band=self.band, drift=drift
        )
        if len(self.servers) < 2:
            half = half_width(found.servers[0].values) if found.servers else math.inf
            return half / math.log1p(self.band) if half > math.log1p(self.band) else 0.0
        unclear = [pair for pair in found.pairs if pair.verdict is Verdict.INCONCLUSIVE]
        lost = {
            one.server for one in found.servers if not one.values and len(one.excluded) >= self.looks.first
        }
        needs = [
            LEAST_NEED if {pair.a, pair.b} & lost else max(LEAST_NEED, _half(pair) / math.log1p(self.band))
            for pair in unclear
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
        found = changes_of(self.gate, self.ended.samples, self.looks, self.ended.drift())
        return math.inf if found.change is Change.CANNOT_TELL else 0.0


def _half(pair: Pair) -> float:
    """Of its interval, on the log scale; infinite without one."""
    return math.inf if pair.low is None or pair.high is None else math.log(pair.high / pair.low) / 2


def changes_of(
    gate: GateTest,
    samples: Mapping[str, Sequence[Sample]],
    looks: Looks | None,
    drift: Mapping[str, float],
    *,
    ended: bool = False,
) -> Changes:
    """What the trials of a gate come to: while it runs, and in its report. `looks`: None with a baseline."""
    directions = {figure: bool(FIGURE[figure].higher_is_better) for figure in gate.figures}
    asked = Asked(gate.base, gate.candidate, directions, gate.margin)
    if gate.baseline is not None or looks is None:
        stored = gate.baseline.experiments if gate.baseline is not None else ()
        experiments = {figure: [one.values.get(figure, ()) for one in stored] for figure in gate.figures}
        return changes_from_earlier(samples, asked, experiments)
    drifts = {figure: drift for figure in gate.figures if figure in DRIFTING}
    return changes(samples, asked, looks, drift=drifts, ended=ended)


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
            watch = UntilClear(servers, looks, compared_figure(group[0].trial.load), band)
        found |= {cell.id: watch for cell in group}
    return found
