"""Published figures of the servers next to measured figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.report.blocks import Column, Row, Section, Table, TableCell
from prony.report.cell_view import CellView
from prony.report.labels import LAYOUT, label, label_of, named, rounded
from prony.report.result import PartView
from prony.report.wording import ratio


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A published and a measured figure, per server."""

    figure: str
    published: tuple[float | None, ...]
    measured: tuple[float | None, ...]
    published_shape: tuple[float | None, ...]
    """Published values ÷ their mean."""
    measured_shape: tuple[float | None, ...]


def _shape(values: Sequence[float | None], others: Sequence[float | None]) -> tuple[float | None, ...]:
    """Each value ÷ the mean over the servers that have both; nothing when fewer than two have."""
    both = [v for v, o in zip(values, others, strict=True) if v is not None and o is not None]
    mean = sum(both) / len(both) if len(both) > 1 else 0.0
    return tuple(v / mean if v is not None and mean else None for v in values)


def published_figures(cells: Sequence[CellView]) -> dict[str, tuple[str, dict[str, float]]]:
    """By figure, from the first source that has it: its label (of several), and values by cell id."""
    sources: dict[str, dict[str, dict[str, float]]] = {}
    for cell in cells:
        for source in cell.cell.published:
            for figure, value in source.figures.items():
                sources.setdefault(figure, {}).setdefault(source.label, {})[cell.cell.id] = value
    by_figure = {}
    for figure, of in sources.items():
        label, values = next(iter(of.items()))
        by_figure[figure] = (label if len(of) > 1 else "", values)
    return by_figure


def history(part: PartView) -> tuple[HistoryRow, ...]:
    """Published figures in the order of the table, for the servers of this part."""
    printed = published_figures(part.cells)
    known = [f for _, _, figures in LAYOUT for f in figures]

    def measured(figure: str) -> tuple[float | None, ...]:
        spreads = (cell.figure(figure) for cell in part.cells)
        return tuple(None if spread is None else spread.median for spread in spreads)

    ids = [cell.cell.id for cell in part.cells]
    rows = []
    for figure in dict.fromkeys((*(f for f in known if f in printed), *printed)):
        theirs, ours = tuple(map(printed[figure][1].get, ids)), measured(figure)
        rows.append(HistoryRow(figure, theirs, ours, _shape(theirs, ours), _shape(ours, theirs)))
    return tuple(rows)


def sources(part: PartView) -> tuple[str, ...]:
    """Where the published figures come from, and what is to be kept in mind, each once."""
    published = (p for cell in part.cells for p in cell.cell.published)
    return tuple(dict.fromkeys(f"{p.source}: {p.note}" if p.note else p.source for p in published))


def history_table(part: PartView) -> Table | None:
    """Published and measured, each with its share of the servers' mean."""
    rows = []
    for row in history(part):
        for name, values, shape in (
            ("published", row.published, row.published_shape),
            ("measured", row.measured, row.measured_shape),
        ):
            cells = tuple(
                TableCell(rounded(row.figure, value), "" if of_mean is None else f"{ratio(of_mean)}×")
                for value, of_mean in zip(values, shape, strict=True)
            )
            rows.append(Row(f"{label_of(row.figure)}, {name}", cells, measured=name == "measured"))
    note = "; ".join((*sources(part), "in brackets the share of the servers' mean"))
    columns = tuple(Column(server.address) for server in part.servers)
    return Table(columns, (Section(tuple(rows)),), title="Published, as history", note=note) if rows else None


def published_lines(part: PartView) -> tuple[str, ...]:
    """What others printed, a line per cell that has any."""
    return tuple(
        f"{view.label}: "
        + "; ".join(
            f"{named(name)} {printed(name, value)} ({source.label})"
            for source in view.cell.published
            for name, value in source.figures.items()
        )
        for view in part.cells
        if view.cell.published
    )


def printed(figure: str, value: float) -> str:
    """A published value with the digits that it was printed with, as far as they can be known."""
    scaled = value * label(figure).scale
    return f"{scaled:,.0f}" if abs(scaled) >= 1000 else f"{scaled:.4g}"
