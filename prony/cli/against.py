"""`--against FILE`: an exported result, such as one of docs/results, beside what is measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.plan.plan import Plan
    from prony.report.result import ResultView


def exported(file: Path, plan: Plan, *, as_json: bool) -> ResultView:
    """The result in a file. Raises UsageError for a file that is no export, or that has no cell of the plan:
    before hours of measuring.
    """
    from prony.report.reading import load_exported

    if as_json:
        raise UsageError(
            "--against prints tables; for JSON import the file (prony results import) and use "
            "prony compare-results ID ID --json"
        )
    found = load_exported(file)
    theirs = {cell.id for cell in found.plan.cells}
    if not theirs & {cell.id for cell in plan.cells}:
        raise UsageError(
            f"{file} has no cell of the plan '{plan.name}': it is '{found.title}' with cells such as "
            f"{next(iter(sorted(theirs)))}; name an export of the same plan"
        )
    return found
