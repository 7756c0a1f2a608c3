"""The exact plan as text, for reports and for the store. Must not know how a plan is run."""

from __future__ import annotations

from typing import Any

import yaml

from prony.plan.spec import ExperimentPlan


def plan_dict(plan: ExperimentPlan) -> dict[str, Any]:
    """The plan as plain values (JSON)."""
    return plan.model_dump(mode="json", exclude_none=True)


def plan_yaml(plan: dict[str, Any]) -> str:
    """The same as YAML, in the order of the model."""
    return yaml.safe_dump(plan, sort_keys=False, allow_unicode=True, width=110)
