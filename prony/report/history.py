"""Published figures beside ours: values, and their shape relative to the servers' mean. Pure.

Must not know how they are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.report.labels import label_of
from prony.report.model import ExperimentView
from prony.report.summary import LAYOUT, spread_of


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One published figure beside ours, per server, each also relative to the servers' mean."""

    figure: str
    label: str
    published: tuple[float | None, ...]
    measured: tuple[float | None, ...]

    @property
    def published_shape(self) -> tuple[float | None, ...]:
        """Published values ÷ their mean."""
        return _shape(self.published, self.measured)

    @property
    def measured_shape(self) -> tuple[float | None, ...]:
        """Measured values ÷ their mean (over the servers that have both)."""
        return _shape(self.measured, self.published)


def _shape(values: Sequence[float | None], others: Sequence[float | None]) -> tuple[float | None, ...]:
    """Each value ÷ the mean over the servers that have both; nothing when fewer than two have."""
    both = [v for v, o in zip(values, others, strict=True) if v is not None and o is not None]
    mean = sum(both) / len(both) if len(both) > 1 else 0.0
    return tuple(v / mean if v is not None and mean else None for v in values)


def history(view: ExperimentView) -> tuple[HistoryRow, ...]:
    """Published figures in the order of the table, for the servers of this experiment."""
    if view.published is None:
        return ()
    known = [f for _, _, figures in LAYOUT for f in figures]
    order = [f for f in known if f in view.published.figures]
    order += [f for f in view.published.figures if f not in known]
    rows = []
    for figure in order:
        theirs = view.published.figures[figure]
        ours = [spread_of(view, s.address, figure) for s in view.servers]
        rows.append(
            HistoryRow(
                figure,
                label_of(figure),
                tuple(theirs.get(s.address) for s in view.servers),
                tuple(s.median if s else None for s in ours),
            )
        )
    return tuple(r for r in rows if any(v is not None for v in r.published))
