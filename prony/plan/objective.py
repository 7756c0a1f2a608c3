"""Service level objectives: figures that must stay below a limit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from prony.errors import UsageError

FIGURES: Mapping[str, str] = {
    "mean": "mean_ms",
    "p50": "p50_ms",
    "p90": "p90_ms",
    "p95": "p95_ms",
    "p99": "p99_ms",
    "p99.9": "p999_ms",
    "max": "max_ms",
}
_UNITS_MS = {"us": 0.001, "µs": 0.001, "ms": 1.0, "s": 1000.0}


@dataclass(frozen=True, slots=True)
class Objective:
    """`figure` must stay below `below_ms`."""

    name: str
    figure: str
    below_ms: float

    def __str__(self) -> str:
        return f"{self.name} < {self.below_ms:g} ms"


def objectives(text: str) -> tuple[Objective, ...]:
    """From `p99<50ms` or `p99<50ms,p99.9<1s`. Raises UsageError with the valid figures and units."""
    return tuple(_one(part) for part in text.split(","))


def _one(part: str) -> Objective:
    match = re.fullmatch(r"\s*([a-z0-9.]+)\s*<\s*(\d+(?:\.\d+)?)\s*(us|µs|ms|s)\s*", part)
    if match is None or match[1] not in FIGURES or float(match[2]) <= 0:
        raise UsageError(
            f"invalid objective '{part.strip()}'; expected one of {', '.join(FIGURES)}, "
            "'<', and a time in us, ms or s, such as 'p99<50ms' (quote it from the shell)"
        )
    return Objective(match[1], FIGURES[match[1]], float(match[2]) * _UNITS_MS[match[3]])


def searchable(text: str) -> tuple[Objective, ...]:
    """As `objectives`; also raises UsageError for a maximum, which no interval bounds from above."""
    wanted = objectives(text)
    for objective in wanted:
        if objective.figure == "max_ms":
            raise UsageError(
                f"the objective 'max < {objective.below_ms:g} ms' cannot be shown to hold: an observed "
                "maximum does not bound the next request; give a percentile, such as "
                f"'p99.9<{objective.below_ms:g}ms'"
            )
    return wanted
