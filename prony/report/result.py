"""What a report shows, as one value: parts in order, each with its cells, and each cell with its trials.

Every output (terminal, page, JSON, CSV) reads a `ResultView` and nothing else. Must not know how it is drawn,
nor where it is stored (reading.py builds it).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from prony.compare.capacity import Found, Outcome
from prony.compare.claim import Claim, Settles
from prony.compare.false_differences import FalseDifferences
from prony.compare.levels import Levels
from prony.compare.noninferiority import Change
from prony.compare.position import PositionEffect
from prony.compare.scaling import Scaling
from prony.compare.shared import CarryOver, LoadRatio
from prony.compare.summary import half_width
from prony.evidence.host import CpuPartition, Fingerprint
from prony.evidence.trial import TrialRecord
from prony.explain.explanation import ExplanationView
from prony.judge.checks.samples import SamplesLimits
from prony.judge.estimate import Estimate, estimates
from prony.judge.finding import Bias, Finding, Judgement, Plateau, added
from prony.judge.percentiles import Percentile, median_interval
from prony.judge.times import NAMED, percentiles, without_response
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad
from prony.plan.objective import Objective
from prony.plan.part import Part, Shape
from prony.plan.plan import Plan, Skipped
from prony.report.aa import OnRecord
from prony.report.gate import GateView
from prony.store.rows import Note

HEADLINE = "requests_per_s"
"""The figure that a pair's first sentence is about."""


@dataclass(frozen=True, slots=True)
class ServerView:
    """A server under test as the reader knows it."""

    address: str
    """Its name in the catalogue with the variant (spring-tomcat, tomcat:async), or its URL."""
    title: str
    versions: Mapping[str, str] = field(default_factory=dict)
    jdk: str = ""


@dataclass(frozen=True)
class TrialView:
    """One trial with what was concluded from it. `figures` holds numbers by their names in FIGURES."""

    record: TrialRecord
    judgement: Judgement
    figures: Mapping[str, float] = field(default_factory=dict)
    change_points_ms: tuple[float, ...] = ()
    """Where the level of throughput changed, in the engine's time."""

    @property
    def conforms(self) -> bool:
        """Whether what was asked for happened, as far as anything tells: only then it has figures."""
        return self.record.failure is None and self.judgement.conforms

    @property
    def counts(self) -> bool:
        """Whether its figures are printed and compared: it conforms, and is no control."""
        return self.conforms and self.record.kind == "trial"

    @property
    def why_not(self) -> str | None:
        """Why it does not conform, in one sentence; None where it does."""
        if self.record.failure is not None:
            return self.record.failure
        if self.judgement.conforms:
            return None
        first, *others = self.judgement.not_conforming or (None,)
        if first is None:
            return "not conforming"
        also = f"; so do {', '.join(one.check for one in others if one)}" if others else ""
        return f"{first.check}: {first.reason}{also}"

    @cached_property
    def estimates(self) -> Mapping[str, Estimate]:
        """Its figures with interval, budget and plateau; empty where it does not conform."""
        return estimates(self.record.evidence, self.judgement, self.figures) if self.conforms else {}

    @cached_property
    def percentiles(self) -> Mapping[str, Percentile]:
        """Of its headline times, as far as its requests support them, with their intervals."""
        limits = SamplesLimits.among(self.judgement.limits)
        return percentiles(self.record.evidence, limits.samples_confidence)

    def beyond(self, name: str) -> float | None:
        """Where a percentile falls among requests that failed: what it exceeds, in ms; else None."""
        if name in self.figures or name not in NAMED:
            return None
        found = self.percentiles.get(name) if without_response(self.record.evidence) else None
        return found.above_ms if found is not None and math.isinf(found.value_ms) else None

    def figure(self, name: str) -> float | None:
        """One of its figures; None when it is absent or not finite."""
        value = self.figures.get(name)
        return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, smallest and largest of one figure over trials; `n` of them had it."""

    median: float
    low: float
    high: float
    n: int
    median_low: float | None = None
    """Lower end of the 95 % interval of the median, by order statistics; None below six trials."""
    median_high: float | None = None
    bound: float | None = None
    """Values from here on are lower bounds: in some trials the percentile falls among failed requests."""

    def exceeded(self, value: float) -> bool:
        """Whether this one of its values is a lower bound only."""
        return self.bound is not None and value >= self.bound


def spread(
    values: Iterable[float | None], beyond: Iterable[float | None] = (), *, percentile: bool = False
) -> Spread | None:
    """Median with its interval, smallest and largest; None without a finite value. `beyond`: lower bounds of
    values that are longer than all others. `percentile`: of an even number the longer one of the two in the
    middle, because the average of two percentiles is the percentile of nothing.
    """
    known = sorted(value for value in values if value is not None and math.isfinite(value))
    bounds = sorted(max([value, *known[-1:]]) for value in beyond if value is not None)
    found = known + bounds
    if not found:
        return None
    middle = len(found) // 2
    alone = percentile or len(found) % 2 or len(known) <= middle
    median = found[middle] if alone else (found[middle - 1] + found[middle]) / 2
    low, high = median_interval(found) or (None, None)
    return Spread(median, found[0], found[-1], len(found), low, high, bounds[0] if bounds else None)


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source of a ratio's budget: relative bounds, None where not bounded."""

    source: str
    """The check's name; `missing`, `position`, and `steady` for the drift to the horizon."""
    low: float | None
    high: float | None
    cancelled: float
    """By how much less that is than both sides' bounds together, because it bends both alike: on the log
    scale.
    """


@dataclass(frozen=True, slots=True)
class Condition:
    """What a claim rests on where nothing bounds it."""

    check: str
    code: str
    text: str
    """Completes "provided that …"."""


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One line of a cell's budget of a figure: relative bounds, the mean over its trials."""

    source: str
    """The check's name, or `missing`."""
    code: str
    low: float | None
    high: float | None
    assumption: str = ""
    advice: str = ""

    @property
    def bias(self) -> Bias:
        """As bounds that add up."""
        return Bias(low=self.low, high=self.high)


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """How far a cell's figure may be off: the interval of its trials' (geometric) mean, and the budget, each
    relative to the mean; None where not bounded, or (of the interval) not known.
    """

    low: float | None
    high: float | None
    bias_low: float | None
    bias_high: float | None

    @property
    def worst(self) -> tuple[float | None, float | None]:
        """Both together at their worst, relative; the interval left out where it is not known."""
        return (
            None if self.bias_low is None else (1 + (self.low or 0.0)) * (1 + self.bias_low) - 1,
            None if self.bias_high is None else (1 + (self.high or 0.0)) * (1 + self.bias_high) - 1,
        )


@dataclass(frozen=True, slots=True)
class PairView:
    """One figure of two servers: `ratio` is a ÷ b with its interval; the sentence says what holds."""

    a: str
    b: str
    figure: str
    ratio: float | None
    low: float | None
    high: float | None
    worst_low: float | None
    worst_high: float | None
    """The interval with every source of the budget at its worst; None: not bounded."""
    later_low: float | None
    later_high: float | None
    """The same up to `horizon_s` after the window; None, too, where no plateau is claimed."""
    horizon_s: float | None
    claim: Claim
    at_least: float | None
    """Of a difference: the near end, as a factor above 1."""
    within: float | None
    """Of an equivalence: the margin, as a share."""
    better: str | None
    """Which of the two is better, where they are shown to differ and the figure has a direction."""
    settles: Settles | None
    """What would settle an open pair, or show for later what is shown for the window."""
    sources: tuple[SourceView, ...]
    """What may bend the ratio, the largest first."""
    provided: tuple[Condition, ...]
    """What the claim rests on where nothing bounds it."""
    sentence: str
    basis: str = ""
    """What the interval rests on: level, trials, family."""
    where: str = ""
    """Workload and load, where a part has several."""

    @property
    def differs(self) -> bool:
        """Whether a difference is shown, for the window at least."""
        return self.claim in {Claim.SHOWN, Claim.SHOWN_FOR_WINDOW}


@dataclass(frozen=True, slots=True)
class PositionView:
    """Change of a figure per place in the block, as a ratio with its 95 % interval."""

    figure: str
    ratio_per_place: float
    low: float
    high: float
    trials: int
    found: bool
    """Whether the interval excludes 1."""
    sentence: str
    where: str = ""
    """Workload and load, where a part has several."""


@dataclass(frozen=True, slots=True)
class SharedView:
    """Loads that shared processes, in one figure: of one workload, or of all where `workload` is empty."""

    workload: str
    figure: str
    processes: int
    trials: int
    ratios: tuple[LoadRatio, ...]
    """From each load to the next one, server by server."""
    place: PositionEffect | None
    """Per place of a load in its process; None where it cannot be told."""
    carry_over: CarryOver | None
    """What the load before leaves behind; None where it cannot be told."""
    found: bool
    """Whether place or carry-over has an effect."""


def _few(found: Sequence[Estimate]) -> tuple[float | None, float | None]:
    """Of one or two trials, relative to their geometric mean: as far as their own intervals reach together,
    and never without the mean itself. None where that of one is not known.
    """
    mean = math.exp(math.fsum(math.log(one.value) for one in found) / len(found))
    lows, highs = [one.low for one in found], [one.high for one in found]
    return (
        None if None in lows else min(0.0, min(low for low in lows if low is not None) / mean - 1),
        None if None in highs else max(0.0, max(high for high in highs if high is not None) / mean - 1),
    )


@dataclass(frozen=True)
class CellView:
    """One cell: its trials in the order in which they ran, and what they come to."""

    cell: Cell
    label: str
    """What tells it from the other cells of its part."""
    trials: tuple[TrialView, ...] = ()
    controls: tuple[TrialView, ...] = ()
    explained: tuple[TrialView, ...] = ()
    """Trials with a profiler: in no figure and no statistic."""
    superseded: tuple[TrialView, ...] = ()
    """Trials on record that were run again: interrupted ones, and with --repeat-disturbed disturbed ones."""
    plateau: Plateau | None = None
    """What is still to come of the headline figure, pooled over the trials that count; None where no plateau
    is claimed.
    """

    @property
    def every(self) -> tuple[TrialView, ...]:
        """Trials and controls, in the order in which they ran."""
        return tuple(sorted((*self.trials, *self.controls), key=lambda t: t.record.started_at))

    @property
    def counting(self) -> tuple[TrialView, ...]:
        """The trials whose figures are printed."""
        return tuple(trial for trial in self.trials if trial.counts)

    @property
    def not_conforming(self) -> tuple[TrialView, ...]:
        """The trials without a figure."""
        return tuple(trial for trial in self.trials if not trial.counts)

    @property
    def conforms(self) -> bool | None:
        """Whether any of its trials does, and so it has a figure; None before any ended."""
        return bool(self.counting) if self.trials else None

    def budget(self, name: str) -> tuple[BudgetLine, ...]:
        """What may bend a figure, the largest first: the mean over the trials that count, and trials without
        a figure at the worst values that any trial of the cell had.
        """
        found: dict[str, list[tuple[Finding, Bias]]] = {}
        for trial in self.counting:
            for finding, bias in trial.judgement.budget(name):
                found.setdefault(finding.check, []).append((finding, bias))
        n = len(self.counting)
        lines = []
        for check, parts in found.items():
            gravest = max(parts, key=lambda part: part[1].size)[0]
            bias = Bias.of_logs(sum(b.down for _, b in parts) / n, sum(b.up for _, b in parts) / n)
            lines.append(
                BudgetLine(check, gravest.code, bias.low, bias.high, gravest.assumption, gravest.advice)
            )
        values = [value for trial in self.counting if (value := trial.figure(name)) and value > 0]
        missing = len(self.trials) - len(values)
        if missing and values:
            logs = [math.log(value) for value in values]
            mean, share = sum(logs) / len(logs), missing / len(self.trials)
            bias = Bias.of_logs(share * (mean - min(logs)), share * (max(logs) - mean))
            why = "trials without a figure lie between the lowest and the highest that were seen"
            lines.append(BudgetLine("missing", "missing", bias.low, bias.high, why))
        return tuple(sorted(lines, key=lambda line: -line.bias.size))

    def uncertainty(self, name: str) -> Uncertainty | None:
        """How far a figure may be off; None without one."""
        found = [one for trial in self.counting if (one := trial.estimates.get(name)) and one.value > 0]
        if not found:
            return None
        whole = added(line.bias for line in self.budget(name))
        half = half_width([one.value for one in found])
        low, high = (math.expm1(-half), math.expm1(half)) if math.isfinite(half) else _few(found)
        return Uncertainty(low, high, whole.low, whole.high)

    @property
    def provided(self) -> tuple[Condition, ...]:
        """What its figures rest on, each once."""
        found = {
            (one.check, one.code): Condition(one.check, one.code, one.provided)
            for trial in self.counting
            for one in trial.judgement.provided
        }
        return tuple(found.values())

    def figure(self, name: str) -> Spread | None:
        """Median, its interval and the range over the trials that count."""
        return spread(
            (trial.figure(name) for trial in self.counting),
            (trial.beyond(name) for trial in self.counting),
            percentile=name in NAMED,
        )

    @property
    def median_trial(self) -> TrialView | None:
        """The trial with the median throughput (the lower one of two): a real trial, not a mixture."""
        ranked = [(rate, trial) for trial in self.counting if (rate := trial.figure(HEADLINE)) is not None]
        ranked.sort(key=lambda pair: pair[0])
        return ranked[(len(ranked) - 1) // 2][1] if ranked else None

    @property
    def bound_by(self) -> str:
        """What bound the throughput, in the trials that count."""
        bounds = [trial.judgement.bound_by for trial in self.counting]
        tally = {bound: bounds.count(bound) for bound in dict.fromkeys(bounds)}
        return ", ".join(b if len(tally) == 1 else f"{b} ({n} of {len(bounds)})" for b, n in tally.items())

    @property
    def why_not(self) -> tuple[str, ...]:
        """Why trials do not conform: each check once."""
        found: dict[str, str] = {}
        for trial in self.trials:
            if trial.why_not:
                found.setdefault(trial.why_not.partition(":")[0], trial.why_not)
        return tuple(found.values())

    @property
    def users(self) -> int | None:
        """Of a closed loop."""
        load = self.cell.trial.load
        return load.users if isinstance(load, ClosedLoad) else None


@dataclass(frozen=True, slots=True)
class Tried:
    """One trial of a capacity search."""

    trial: TrialView
    rate_per_s: float
    outcome: Outcome
    pressure: float | None
    """Measured ÷ allowed of the tightest objective; None when it cannot be printed."""


@dataclass(frozen=True, slots=True)
class SearchView:
    """What a capacity search came to."""

    objectives: tuple[Objective, ...]
    found: Found
    tried: tuple[Tried, ...]
    """By rate."""


@dataclass(frozen=True)
class PartView:
    """One part of a plan: cells that are reported together."""

    part: Part
    cells: tuple[CellView, ...] = ()
    servers: tuple[ServerView, ...] = ()
    pairs: tuple[PairView, ...] = ()
    positions: tuple[PositionView, ...] = ()
    """Of the figure that each question is about; none where the trials do not suffice."""
    skipped: tuple[Skipped, ...] = ()
    laws: Mapping[str, Scaling | None] = field(default_factory=dict)
    """Of a sweep, by server; None where too few numbers of users have a trial that counts."""
    search: SearchView | None = None
    """Of a capacity search."""
    aa: FalseDifferences | None = None
    """Of a server against itself; None where too few trials count."""
    gate: GateView | None = None
    """Of a candidate against its base."""
    shared: tuple[SharedView, ...] = ()
    """Of loads that shared processes, by figure, and by workload where these did not."""
    levels: Levels | None = None
    """Of a comparison of one workload and load: variance within and between processes."""
    aa_on_record: OnRecord | None = None
    """Of a comparison: the stored A/A experiment that fits."""
    explanation: ExplanationView | None = None
    """Where CPU time goes; None where no trial ran with a profiler."""
    failure: str = ""
    """Why a part that had to follow another was not run: one sentence."""
    findings: tuple[Finding, ...] = ()
    """About trials that are compared with each other; each trial has its own beside these."""

    @property
    def trials(self) -> tuple[TrialView, ...]:
        """Trials and controls, in the order in which they ran."""
        every = [trial for cell in self.cells for trial in cell.every]
        return tuple(sorted(every, key=lambda t: (t.record.started_at, t.record.id)))

    @property
    def counting(self) -> tuple[TrialView, ...]:
        """The trials whose figures are printed."""
        return tuple(trial for trial in self.trials if trial.counts)

    @property
    def external(self) -> bool:
        """Whether the servers were already running, and not started by Prony."""
        return bool(self.trials) and all(not t.record.evidence.server.owned for t in self.trials)

    @property
    def workloads(self) -> tuple[str, ...]:
        """In the order of the plan."""
        return tuple(dict.fromkeys(view.cell.trial.workload.name for view in self.cells))

    @property
    def swept(self) -> bool:
        """Whether the number of users is what changes between loads."""
        return len({view.users for view in self.cells if view.users is not None}) > 1

    @property
    def is_open(self) -> bool:
        """Whether its times are latencies of an open loop, from the intended send."""
        return any(view.cell.trial.load.model == "open" for view in self.cells)

    def of(self, server: str) -> tuple[CellView, ...]:
        """The cells of one server."""
        return tuple(view for view in self.cells if view.cell.server == server)

    @property
    def layout(self) -> Shape:
        """How it is shown: as its shape says, but what compares servers under one load as a comparison, and
        what does so under several, or at given rates, as a table of cells.
        """
        if self.part.shape not in ("comparison", "matrix"):
            return self.part.shape
        one_each = self.part.follows is None and len(self.cells) == len(self.servers)
        if self.part.shape == "comparison":
            return "comparison" if one_each else "matrix"
        one_load = (
            len({(view.cell.trial.load_name, view.cell.trial.workload.name) for view in self.cells}) == 1
        )
        compared = len(self.servers) > 1 and self.part.comparisons is None
        return "comparison" if one_each and one_load and compared else "matrix"

    @property
    def usable(self) -> bool:
        """Whether it answers what was asked: each cell, a sweep any point, a search a rate that held."""
        if self.failure or any(not finding.conforms for finding in self.findings):
            return False
        if self.search is not None:
            return self.search.found.held_per_s is not None
        if self.part.aa is not None:
            return self.aa is not None
        if self.gate is not None:
            return self.gate.change is not Change.NOT_MEASURABLE
        if self.part.shape == "sweep":
            return bool(self.counting)
        return all(view.counting for view in self.cells)


@dataclass(frozen=True)
class ResultView:
    """All that a report needs of one stored experiment, whatever command made it."""

    id: str
    title: str
    created: datetime
    state: str
    """finished, interrupted, running."""
    plan: Plan
    plan_text: str
    """The exact plan as YAML."""
    parts: tuple[PartView, ...]
    fingerprint: Fingerprint | None = None
    partition: CpuPartition | None = None
    warnings: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    """What people wrote about it, the oldest first."""

    @property
    def quick(self) -> bool:
        """Whether every figure is marked as a first look."""
        return self.plan.quick

    @property
    def cells(self) -> tuple[CellView, ...]:
        """Of all parts."""
        return tuple(view for part in self.parts for view in part.cells)

    @property
    def trials(self) -> tuple[TrialView, ...]:
        """Trials and controls of all parts, in the order in which they ran."""
        return tuple(trial for part in self.parts for trial in part.trials)

    @property
    def servers(self) -> tuple[ServerView, ...]:
        """Of all parts, each once."""
        return tuple({server.address: server for part in self.parts for server in part.servers}.values())

    @property
    def planned(self) -> int:
        """Trials that the plan asks for, so far as it has been drawn up; explained ones are none of them."""
        return sum(one.kind != "explained" for one in self.plan.order())

    @property
    def external(self) -> bool:
        """Whether the servers were already running, and not started by Prony."""
        return bool(self.trials) and all(part.external for part in self.parts if part.trials)

    @property
    def conforms(self) -> bool:
        """Whether every trial that was to be measured did as was asked."""
        return bool(self.trials) and all(trial.conforms for trial in self.trials)

    @property
    def usable(self) -> bool:
        """Whether everything that was asked has an answer that may be printed."""
        return bool(self.trials) and all(part.usable for part in self.parts)
