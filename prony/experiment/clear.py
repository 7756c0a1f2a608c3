"""Are more trials needed? The stated rule for adding blocks until every pair is clear. Pure.

Must not run trials; docs/method.md has the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prony.compare import BAND, Looks, Sample, Verdict, compare
from prony.evidence.trial import TrialRecord
from prony.judge.checks.steady import SteadyWindowLimits
from prony.judge.drift import bound_of, is_asked, level_stretch
from prony.judge.finding import Judgement, Status
from prony.judge.outside import disturbed
from prony.plan.load import ClosedLoad, Load
from prony.plan.part import Part
from prony.plan.plan import Cell
from prony.steady.stretch import Stretch

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


@dataclass(slots=True)
class UntilClear:
    """Collects what ended and says, before each block, whether these servers need another one."""

    servers: Sequence[str]
    looks: Looks
    figure: str = CLOSED_FIGURE
    band: float = BAND
    samples: list[Sample] = field(default_factory=list)
    levels: dict[tuple[str, int], Stretch | None] = field(default_factory=dict)
    """By server and block, of the trials that count."""

    def add(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> None:
        """Take a trial into account; controls take no part, invalid ones are known and do not count."""
        if record.kind != "trial":
            return
        self.samples = [
            one for one in self.samples if (one.server, one.block) != (record.server, record.block)
        ]
        made = sample(record, judgement, figures.get(self.figure))
        self.samples.append(made)
        self.levels.pop((record.server, record.block), None)
        if made.valid and is_asked(record.evidence):
            self.levels[record.server, record.block] = level_stretch(
                record.evidence, SteadyWindowLimits.among(judgement.limits).steady
            )

    def over(self) -> bool:
        """Whether every pair is clear."""
        drift = {
            server: bound_of(level for (of, _), level in self.levels.items() if of == server)
            for server in {server for server, _ in self.levels}
        }
        found = compare(
            self.samples, self.figure, servers=self.servers, looks=self.looks, band=self.band, drift=drift
        ).pairs
        return bool(found) and all(pair.verdict is not Verdict.INCONCLUSIVE for pair in found)


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


def watches(part: Part, cells: Sequence[Cell]) -> dict[str, UntilClear]:
    """Cell -> what watches it: one for the servers of each question. Empty for a part with a
    fixed number of trials.
    """
    if part.until_clear is None:
        return {}
    found: dict[str, UntilClear] = {}
    for group in questions(part, cells).values():
        watch = UntilClear(
            tuple(cell.server for cell in group),
            Looks(group[0].trials, part.until_clear),
            compared_figure(group[0].trial.load),
            part.band,
        )
        found |= {cell.id: watch for cell in group}
    return found
