"""The run of a plan as JSON: part by part, cell by cell. Must not know where it is printed."""

from __future__ import annotations

from typing import Any

from prony.report.plan_view import CellView, PlanView


def plan_json(view: PlanView) -> dict[str, Any]:
    """`schema` is raised when a key is renamed, removed or changes its meaning."""
    return {
        "schema": 1,
        "kind": "plan",
        "id": view.id,
        "title": view.title,
        "created": view.created.isoformat(),
        "status": view.status_word,
        "quick": view.quick,
        "verdict": view.status.value,
        "planned_trials": view.planned,
        "ended_trials": view.ended,
        "changes": list(view.plan.changes),
        "warnings": list(view.warnings),
        "parts": [
            {
                "name": part.part.name,
                "title": part.part.title,
                "note": part.part.note,
                "cells": [_cell(cell) for cell in part.cells],
                "skipped": [{"cell": one.cell, "why": one.why} for one in part.skipped],
                "comparisons": [
                    {
                        "where": where,
                        "a": pair.a,
                        "b": pair.b,
                        "figure": pair.figure,
                        "ratio": pair.ratio,
                        "low": pair.low,
                        "high": pair.high,
                        "verdict": pair.verdict,
                        "sentence": pair.sentence,
                    }
                    for where, pair in part.pairs
                ],
                "findings": [
                    {
                        "check": concern.finding.check,
                        "status": concern.finding.status.value,
                        "reason": concern.finding.reason,
                        "advice": concern.finding.advice,
                        "cells": list(concern.cells),
                    }
                    for concern in part.concerns
                ],
            }
            for part in view.parts
        ],
        "seed": view.plan.seed,
        "fingerprint": None if view.fingerprint is None else view.fingerprint.key,
    }


def _cell(view: CellView) -> dict[str, Any]:
    cell = view.cell
    names = sorted({name for trial in view.counting for name in trial.figures})
    figures = {name: found for name in names if (found := view.figure(name)) is not None}
    return {
        "id": cell.id,
        "server": cell.server,
        "workload": cell.trial.workload.name,
        "load": cell.trial.load_name,
        "users": cell.users,
        "think_ms": cell.trial.load.think.expected_ms,
        "verdict": None if view.status is None else view.status.value,
        "why": list(view.why),
        "bound_by": view.bound_by or None,
        "trials": {"planned": cell.trials, "ended": len(view.trials), "counting": len(view.counting)},
        "figures": {
            name: {"median": found.median, "low": found.low, "high": found.high, "n": found.n}
            for name, found in figures.items()
        },
        "published": [
            {"label": one.label, "source": one.source, "note": one.note, "figures": one.figures}
            for one in cell.published
        ],
    }
