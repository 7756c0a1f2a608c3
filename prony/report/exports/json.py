"""The object that `prony results show ID --json` prints. Pure."""

from __future__ import annotations

import json

from prony.report.delivery import as_plain
from prony.report.export import to_json
from prony.report.exports import Exported, Format
from prony.report.result import ResultView


def write(view: ResultView) -> Exported:
    return Exported(json.dumps(as_plain(to_json(view)), indent=2, allow_nan=False) + "\n")


FORMAT = Format("the result as --json prints it", write, ".json")
