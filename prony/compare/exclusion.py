"""Whether a verdict may rest on the remaining trials: an exclusion for what happened in a trial may depend on
how fast the server was. Must not know why a trial was excluded.

Equal servers of which one had its slow starts excluded were called different in 68 % of simulated
experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prony.compare.ratio import RatioResult

MOST_EXCLUDED = 0.2
"""Largest share of a server's trials that may be excluded; beyond it the rest is a selection."""


@dataclass(frozen=True, slots=True)
class Side:
    """One server of a pair: the trials that count, and the blocks of those excluded for what happened in them
    (another process on the CPUs is no such reason: it does not depend on the server).
    """

    server: str
    values: Sequence[float]
    blocks: Sequence[int]
    excluded_blocks: Sequence[int]
    excluded_values: Sequence[float | None] = ()
    """What each excluded trial measured; None where it has no figure."""

    @property
    def trials(self) -> int:
        """All trials, excluded ones included."""
        return len(self.values) + len(self.excluded_blocks)

    @property
    def share(self) -> float:
        """Excluded ÷ all."""
        return len(self.excluded_blocks) / self.trials if self.trials else 0.0

    def with_excluded(self, value: float, *, measured: bool) -> tuple[list[float], list[int]]:
        """As if every excluded trial had this value; with `measured` only those without a figure of their
        own.
        """
        own = self.excluded_values if measured else ()
        known = [*own, *(None for _ in self.excluded_blocks[len(own) :])]
        values = [*self.values, *(value if one is None else one for one in known)]
        return values, [*self.blocks, *self.excluded_blocks]


Measure = Callable[[Sequence[float], Sequence[float], Sequence[int], Sequence[int]], RatioResult]


def undecided_because(a: Side, b: Side, measure: Measure, decides: Callable[[RatioResult], bool]) -> str:
    """Why the exclusions leave the pair undecided, as the end of a sentence; empty where they do not.

    They do when more than MOST_EXCLUDED of a side is gone, or when the verdict falls once the excluded trials
    are counted: with the figures that they measured, and with the extreme values that were seen, against it
    (the lowest for one side and the highest for the other, both ways; bounds in the manner of Manski 1989).
    `decides`: whether a result still gives the verdict that is to be said.
    """
    if not a.excluded_blocks and not b.excluded_blocks:
        return ""
    if max(a.share, b.share) <= MOST_EXCLUDED:
        seen = [*a.values, *b.values]
        worst = ((min(seen), max(seen)), (max(seen), min(seen)))
        if all(
            decides(_imputed(a, b, *ends, measured, measure)) for ends in worst for measured in (True, False)
        ):
            return ""
    counts = " and ".join(
        f"{len(side.excluded_blocks)} of {side.trials} trials of {side.server}" for side in (a, b)
    )
    return f"{counts} were excluded, which may have made the difference"


def _imputed(a: Side, b: Side, for_a: float, for_b: float, measured: bool, measure: Measure) -> RatioResult:
    values_a, blocks_a = a.with_excluded(for_a, measured=measured)
    values_b, blocks_b = b.with_excluded(for_b, measured=measured)
    return measure(values_a, values_b, blocks_a, blocks_b)
