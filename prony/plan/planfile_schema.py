"""The JSON Schema of plan files, for editors: `python -m prony.plan.planfile_schema`."""

from __future__ import annotations

import json
from typing import Any

from prony.plan.planfile import PlanFile


def json_schema() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **PlanFile.model_json_schema(mode="validation", by_alias=True),
        "title": "A plan of Prony (plans/*.yaml)",
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
