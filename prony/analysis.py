"""What trials that ended are compared by, in a running experiment and in a report of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from prony.compare import Later, Looks, Sample
from prony.compare.noninferiority import Changes, MarginTest, changes, changes_from_earlier
from prony.evidence.trial import Evidence, TrialRecord
from prony.judge.checks.steady import SteadyWindowLimits
from prony.judge.drift import claims_plateau, level_stretch, pooled_drift, series_of
from prony.judge.figures import FIGURE
from prony.judge.finding import BUDGET_OF, Judgement
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad, Load
from prony.plan.part import GateTest, Part

CLOSED_FIGURE = "requests_per_s"
OPEN_FIGURE = "p99_ms"
"""What the question is about where the rate is given, or users pause."""


def compared_figure(load: Load) -> str:
    """What servers under this load are compared by before anything else."""
    capacity = isinstance(load, ClosedLoad) and load.think.kind == "none"
    return CLOSED_FIGURE if capacity else OPEN_FIGURE


def sample(record: TrialRecord, judgement: Judgement, figures: Mapping[str, float], figure: str) -> Sample:
    """A figure of a trial as a sample: with its biases, or the reason that it is missing."""
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


def later(trials: Mapping[str, Sequence[Evidence]], figure: str, limits: SteadyWindowLimits) -> Later | None:
    """Residual drift by server; None where no plateau is claimed, or no series bounds the figure."""
    every = [trial for own in trials.values() for trial in own]
    if not every or not all(claims_plateau(trial) for trial in every):
        return None
    series = series_of(every[0].load).get(BUDGET_OF.get(figure, figure))
    if series is None:
        return None
    which, sign = series
    horizon_s = limits.steady_horizon_s
    levels = {
        server: [level_stretch(trial, limits.steady, which) for trial in own]
        for server, own in trials.items()
    }
    seen = [trial.row_s * trial.logs.size for own in levels.values() for trial in own if trial is not None]
    return Later(
        horizon_s=horizon_s,
        coming={server: pooled_drift(own, horizon_s) for server, own in levels.items() if own},
        sign=sign,
        seen_s=fmean(seen) if seen else 0.0,
    )


def changes_of(
    gate: GateTest,
    samples: Mapping[str, Sequence[Sample]],
    looks: Looks | None,
    later_of: Callable[[str], Later | None],
    *,
    ended: bool = False,
) -> Changes:
    """The outcome of a gate. `looks`: None with a baseline. `later_of`: residual drift of a figure."""
    directions = {figure: bool(FIGURE[figure].higher_is_better) for figure in gate.figures}
    test = MarginTest(gate.base, gate.candidate, directions, gate.margin, gate.margins)
    if gate.baseline is not None or looks is None:
        stored = gate.baseline.experiments if gate.baseline is not None else ()
        experiments = {
            figure: [experiment.values.get(figure, ()) for experiment in stored] for figure in gate.figures
        }
        return changes_from_earlier(samples, test, experiments)
    return changes(samples, test, looks, later=later_of, ended=ended)


def questions(part: Part, cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Cells by workload and load; a comparison with a load per server is a single question."""
    if cells and part.shape == "comparison" and len(cells) == len({cell.server for cell in cells}):
        return {"": list(cells)}
    by_load: dict[str, list[Cell]] = {}
    for cell in cells:
        by_load.setdefault(f"{cell.trial.workload.name}, {cell.trial.load_name}", []).append(cell)
    return by_load
