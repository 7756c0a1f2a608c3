"""Every pair of servers in one figure, compared over their trials. Must not know what a report shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prony.compare import BAND, Looks, Sample, compare
from prony.report.model import PairView, TrialView


def has(trials: Iterable[TrialView], figure: str) -> bool:
    """Whether any trial, controls apart, has the figure."""
    return any(figure in trial.figures for trial in trials if trial.record.kind == "trial")


def figure_pairs(
    trials: Iterable[TrialView],
    figure: str,
    servers: Sequence[str],
    looks: Looks | None = None,
    band: float = BAND,
) -> list[PairView]:
    """Controls take no part; trials that may not be printed are known to the comparison and do not count.
    `looks`: those of a plan that adds trials until it is clear; `band`: the practical band of the plan.
    """
    samples = [
        Sample(
            server=trial.record.server,
            block=trial.record.block,
            value=trial.figures.get(figure),
            valid=trial.counts,
            why=trial.rejected_because or "",
            machine=trial.record.fingerprint_key,
        )
        for trial in trials
        if trial.record.kind == "trial"
    ]
    return [
        PairView(
            a=pair.a,
            b=pair.b,
            figure=pair.figure,
            ratio=pair.ratio,
            low=pair.low,
            high=pair.high,
            verdict=str(pair.verdict),
            sentence=pair.sentence,
            more_trials=pair.more_trials,
        )
        for pair in compare(samples, figure, servers=servers, looks=looks, band=band).pairs
    ]
