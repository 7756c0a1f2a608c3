"""A cell of a report: its trials and their summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from prony.analysis import OPEN_FIGURE, compared_figure
from prony.compare.sentence import OBSTACLES
from prony.compare.summary import half_width
from prony.evidence.trial import TrialRecord
from prony.judge.checks.samples import SamplesLimits
from prony.judge.estimate import Estimate, Uncertainty, estimates
from prony.judge.finding import Bias, Finding, Judgement, Plateau, added
from prony.judge.percentiles import Percentile, median_interval
from prony.judge.times import NAMED, percentiles, without_response
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad
from prony.report.labels import BOUND_WORDS, STEADY_OVER_PUBLISHED

HEADLINE = "requests_per_s"
"""The figure that a pair's first sentence is about."""
IN_PLACE_OF_P99 = ("p95_ms", "p90_ms", "p50_ms", "mean_ms")


@dataclass(frozen=True)
class TrialView:
    """A trial with its judgement and figures, by their names in FIGURES."""

    record: TrialRecord
    judgement: Judgement
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def conforms(self) -> bool:
        """Whether the trial ran as planned as far as its evidence shows; otherwise it has no figures."""
        return self.record.failure is None and self.judgement.conforms

    @property
    def counts(self) -> bool:
        """Whether its figures are printed and compared: it conforms, and is no control."""
        return self.conforms and self.record.kind == "trial"

    @property
    def why_not(self) -> str | None:
        """Why it does not conform; None if it does."""
        if self.record.failure is not None:
            return self.record.failure
        if self.judgement.conforms:
            return None
        first, *others = self.judgement.not_conforming or (None,)
        if first is None:
            return "not conforming"
        also = f"; so do {', '.join(other.check for other in others if other)}" if others else ""
        return f"{first.check}: {first.reason}{also}"

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Code and sentence of each."""
        reasons = tuple((f"{f.check}.{f.code}", f.reason) for f in self.judgement.not_conforming)
        failure = self.record.failure
        return reasons or (() if failure is None else (("identity.ended_early", failure),))

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
        percentile = self.percentiles.get(name) if without_response(self.record.evidence) else None
        return percentile.above_ms if percentile is not None and math.isinf(percentile.value_ms) else None

    def figure(self, name: str) -> float | None:
        """A figure; None if absent or not finite."""
        if name == STEADY_OVER_PUBLISHED:
            steady, published = self.figure(HEADLINE), self.figure("published_requests_per_s")
            return steady / published if steady is not None and published else None
        value = self.figures.get(name)
        return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, smallest and largest of a figure over `n` trials that have it."""

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
        """Whether this value is only a lower bound."""
        return self.bound is not None and value >= self.bound


def spread(
    values: Iterable[float | None], beyond: Iterable[float | None] = (), *, percentile: bool = False
) -> Spread | None:
    """`beyond`: lower bounds longer than all values. `percentile`: the longer of two in the middle."""
    known = sorted(value for value in values if value is not None and math.isfinite(value))
    bounds = sorted(max([value, *known[-1:]]) for value in beyond if value is not None)
    ordered = known + bounds
    if not ordered:
        return None
    middle = len(ordered) // 2
    alone = percentile or len(ordered) % 2 or len(known) <= middle
    median = ordered[middle] if alone else (ordered[middle - 1] + ordered[middle]) / 2
    low, high = median_interval(ordered) or (None, None)
    return Spread(median, ordered[0], ordered[-1], len(ordered), low, high, bounds[0] if bounds else None)


@dataclass(frozen=True, slots=True)
class Condition:
    """What a claim rests on where nothing bounds it."""

    check: str
    code: str
    text: str
    """Completes "provided that …"."""


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """A source in a cell's budget of a figure: relative bounds, mean over its trials."""

    source: str
    """The check's name, or `missing`."""
    code: str
    low: float | None
    high: float | None
    assumption: str = ""
    advice: str = ""

    @property
    def name(self) -> str:
        """In words."""
        by_check = OBSTACLES.get(self.source, self.source)
        return OBSTACLES.get(f"{self.source} {self.code}", by_check)

    @property
    def bias(self) -> Bias:
        return Bias(low=self.low, high=self.high)


def _few(estimates: Sequence[Estimate]) -> tuple[float | None, float | None]:
    """Joint range of the intervals of up to two trials, relative to their geometric mean."""
    mean = math.exp(math.fsum(math.log(estimate.value) for estimate in estimates) / len(estimates))
    lows, highs = [estimate.low for estimate in estimates], [estimate.high for estimate in estimates]
    return (
        None if None in lows else min(0.0, min(low for low in lows if low is not None) / mean - 1),
        None if None in highs else max(0.0, max(high for high in highs if high is not None) / mean - 1),
    )


@dataclass(frozen=True)
class CellView:
    """A cell: its trials in order of execution, and their summary."""

    cell: Cell
    label: str
    """Its label among the cells of its part."""
    trials: tuple[TrialView, ...] = ()
    controls: tuple[TrialView, ...] = ()
    explained: tuple[TrialView, ...] = ()
    """Trials with a profiler: in no figure and no statistic."""
    superseded: tuple[TrialView, ...] = ()
    """Stored trials that were repeated: interrupted, or disturbed with --repeat-disturbed."""
    plateau: Plateau | None = None
    """Residual drift of the headline figure; None where no plateau is claimed."""

    @property
    def every(self) -> tuple[TrialView, ...]:
        """Trials and controls, in the order in which they ran."""
        return tuple(sorted((*self.trials, *self.controls), key=lambda t: t.record.started_at))

    @cached_property
    def counting(self) -> tuple[TrialView, ...]:
        """The trials whose figures are printed."""
        return tuple(trial for trial in self.trials if trial.counts)

    @property
    def conforms(self) -> bool | None:
        """Whether any of its trials does, and so it has a figure; None before any ended."""
        return bool(self.counting) if self.trials else None

    @cached_property
    def headline_figure(self) -> str:
        """Of an open load with too few requests for a p99 the highest percentile that they support."""
        figure = compared_figure(self.cell.trial.load)
        named = (figure, *IN_PLACE_OF_P99) if figure == OPEN_FIGURE else (figure,)
        return next((name for name in named if self.figure(name) is not None), figure)

    @cached_property
    def _budgets(self) -> dict[str, tuple[BudgetLine, ...]]:
        return {}

    def budget(self, name: str) -> tuple[BudgetLine, ...]:
        """The largest first: means over trials that count; those without a figure at the others' worst."""
        if name not in self._budgets:
            self._budgets[name] = self._budget(name)
        return self._budgets[name]

    def _budget(self, name: str) -> tuple[BudgetLine, ...]:
        biases: dict[str, list[tuple[Finding, Bias]]] = {}
        for trial in self.counting:
            for finding, bias in trial.judgement.budget(name):
                biases.setdefault(finding.check, []).append((finding, bias))
        n = len(self.counting)
        lines = []
        for check, parts in biases.items():
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
        """Uncertainty of a figure; None without the figure."""
        estimates = [e for trial in self.counting if (e := trial.estimates.get(name)) and e.value > 0]
        if not estimates:
            return None
        whole = added(line.bias for line in self.budget(name))
        half = half_width([e.value for e in estimates])
        low, high = (math.expm1(-half), math.expm1(half)) if math.isfinite(half) else _few(estimates)
        return Uncertainty(low, high, whole.low, whole.high)

    @property
    def provided(self) -> tuple[Condition, ...]:
        """What its figures rest on, each once."""
        conditions = {
            (finding.check, finding.code): Condition(finding.check, finding.code, finding.provided)
            for trial in self.counting
            for finding in trial.judgement.provided
        }
        return tuple(conditions.values())

    def figure(self, name: str) -> Spread | None:
        """Median, its interval and the range over the trials that count."""
        return spread(
            (trial.figure(name) for trial in self.counting),
            (trial.beyond(name) for trial in self.counting),
            percentile=name in NAMED,
        )

    @property
    def median_trial(self) -> TrialView | None:
        """The trial with the median throughput (the lower median)."""
        ranked = [(rate, trial) for trial in self.counting if (rate := trial.figure(HEADLINE)) is not None]
        ranked.sort(key=lambda pair: pair[0])
        return ranked[(len(ranked) - 1) // 2][1] if ranked else None

    @property
    def bound_by(self) -> str:
        return self._bounds({})

    @property
    def bound_words(self) -> str:
        """What bound the throughput; empty where that is not known."""
        return "" if self.bound_by in ("", "unknown") else self._bounds(BOUND_WORDS)

    def _bounds(self, named: Mapping[str, str]) -> str:
        bounds = [named.get(bound, bound) for bound in (trial.judgement.bound_by for trial in self.counting)]
        tally = {bound: bounds.count(bound) for bound in dict.fromkeys(bounds)}
        return ", ".join(b if len(tally) == 1 else f"{b} ({n} of {len(bounds)})" for b, n in tally.items())

    @property
    def why_not(self) -> tuple[str, ...]:
        """Each check once."""
        reasons: dict[str, str] = {}
        for trial in self.trials:
            if trial.why_not:
                first = next(iter(trial.judgement.not_conforming), None)
                reasons.setdefault(trial.why_not if first is None else first.check, trial.why_not)
        return tuple(reasons.values())

    @property
    def users(self) -> int | None:
        load = self.cell.trial.load
        return load.users if isinstance(load, ClosedLoad) else None
