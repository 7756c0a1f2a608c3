"""What a sweep or a search for a capacity came to: on a terminal, as JSON, or as a page.

Must not measure.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prony.compare.scaling import Estimate
from prony.experiment.capacity import Capacity
from prony.experiment.points import PointTrial
from prony.experiment.sweep import Sweep
from prony.report.delivery import deliver
from prony.report.scaling_words import Shown, capacity_shown, capacity_words, law_words, sweep_shown


def show_sweep(sweep: Sweep, identifier: str, *, as_json: bool, report: Path | None) -> None:
    """Print the sweep, and write its page where asked for."""
    deliver(
        as_json=as_json,
        as_object=lambda: {"id": identifier, **sweep_json(sweep)},
        table=partial(_table, sweep_shown(sweep), identifier),
        page=partial(page_of, sweep, identifier),
        report=report,
    )


def show_capacity(found: Capacity, identifier: str, *, as_json: bool, report: Path | None) -> None:
    """Print what the search came to, and write its page where asked for."""
    deliver(
        as_json=as_json,
        as_object=lambda: {"id": identifier, **capacity_json(found)},
        table=partial(_table, capacity_shown(found), identifier),
        page=partial(page_of, found, identifier),
        report=report,
    )


def page_of(made: Sweep | Capacity, identifier: str) -> str:
    """Its self-contained page, as text."""
    # Charts take a second to import: only who wants the page pays for them.
    from prony.report.html.scaling import capacity_page, sweep_page

    if isinstance(made, Sweep):
        return sweep_page(made, _named(sweep_shown(made), identifier))
    return capacity_page(made, _named(capacity_shown(made), identifier))


def _named(shown: Shown, identifier: str) -> Shown:
    return replace(shown, sentences=(*shown.sentences, f"Stored as {identifier}."))


def _table(shown: Shown, identifier: str, console: Console) -> None:
    console.print()
    console.print(Text(shown.title, style="bold"))
    for sentence in shown.sentences:
        console.print(Text(sentence))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, name in enumerate(shown.head[:-1]):
        table.add_column(name, justify="left" if place == len(shown.head) - 2 else "right")
    for line in shown.lines:
        table.add_row(*(Text(cell) for cell in (*line.cells, line.verdict)))
    console.print(table)
    whys: dict[str, list[str]] = {}
    for line in shown.lines:
        if line.why:
            whys.setdefault(line.why, []).append(line.cells[0])
    for why, where in whys.items():
        console.print(Text(f"{', '.join(where)}: {why}", style="dim"))
    console.print(Text(f"stored as {identifier}: prony results show {identifier}", style="dim"))


def sweep_json(sweep: Sweep) -> dict[str, Any]:
    """The JSON of `prony sweep` (docs/commands.md)."""
    law = sweep.law
    return {
        "schema": 1,
        "kind": "sweep",
        "target": sweep.target,
        "seed": sweep.seed,
        "points": [
            {
                "users": users,
                "trials": [_trial_json(t) for t in sweep.of(users)],
                "fitted_per_s": None if law is None else law.per_s(users),
            }
            for users in sweep.users
        ],
        "law": None
        if law is None
        else {
            "rising": law.rising,
            "rate_1_per_s": _estimate_json(law.rate_1),
            "alpha": _estimate_json(law.alpha),
            "beta": _estimate_json(law.beta),
            "peak_users": _estimate_json(law.peak),
            "peak_seen": law.peak_seen,
            "sweet_spot_users": _estimate_json(law.sweet_spot),
            "miss": law.miss,
            "poor": law.poor,
            "confidence": law.confidence,
        },
        "sentences": law_words(sweep),
    }


def capacity_json(capacity: Capacity) -> dict[str, Any]:
    """The JSON of `prony capacity` (docs/commands.md)."""
    found = capacity.found
    return {
        "schema": 1,
        "kind": "capacity",
        "target": capacity.target,
        "objectives": [
            {"name": o.name, "figure": o.figure, "below_ms": o.below_ms} for o in capacity.objectives
        ],
        "held_per_s": found.held_per_s,
        "failed_per_s": found.failed_per_s,
        "client_per_s": found.client_per_s,
        "end": None if found.end is None else found.end.value,
        "sentence": capacity_words(capacity),
        "tried": [
            {
                "rate_per_s": one.rate_per_s,
                "outcome": one.outcome.value,
                "pressure": one.pressure,
                **_trial_json(one.trial),
            }
            for one in capacity.tried
        ],
    }


def _trial_json(trial: PointTrial) -> dict[str, Any]:
    return {
        "id": trial.trial_id,
        "verdict": trial.judgement.verdict.value,
        "bound_by": trial.judgement.bound_by,
        "failure": trial.failure,
        "why": trial.why,
        "figures": {name: value for name, value in trial.figures.items() if math.isfinite(value)}
        if trial.counts
        else {},
    }


def _estimate_json(estimate: Estimate) -> dict[str, float | None]:
    """Infinity (no peak) has no JSON: it is null, as is an interval that is not known."""

    def finite(value: float | None) -> float | None:
        return value if value is not None and math.isfinite(value) else None

    return {
        "value": finite(estimate.value),
        "ci_low": finite(estimate.low),
        "ci_high": finite(estimate.high),
    }
