"""Are more trials needed? The stated rule for adding blocks until every pair is clear, or a gate decided.
Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from prony.analysis import CLOSED_FIGURE, changes_of, compared_figure, later, questions, sample
from prony.compare import MARGINS, Claim, Later, Looks, Margins, Sample, compare
from prony.compare.noninferiority import Change
from prony.compare.summary import half_width
from prony.evidence.trial import Evidence, TrialRecord
from prony.judge.checks.steady import SteadyWindowLimits
from prony.judge.finding import Judgement
from prony.plan.cell import Cell
from prony.plan.part import GateTest, Part

LEAST_NEED = 1e-6
"""Of a pair with a server of which no trial counts, or one that is not clear for another reason than its
interval: what can be told comes first.
"""


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
