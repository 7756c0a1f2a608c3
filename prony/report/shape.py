"""A kind of part: its sentences, tables and chapters; and effects of shared processes. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from prony.analysis import compared_figure
from prony.compare.shared import CarryOver, LoadRatio, LoadSample, load_ratios, order_effects
from prony.plan.part import Sharing
from prony.plan.processes import name_within
from prony.report.blocks import Block, Chapter, Lines
from prony.report.cell_view import HEADLINE, CellView, Spread, TrialView
from prony.report.intervals import over_trials
from prony.report.labels import label_of
from prony.report.out import filled
from prony.report.result import PartView, SharedView
from prony.report.wording import counted, figure_good_to, ratio

MOST_SENTENCES = 4


class Shape(ABC):
    """How a part is shown of which nothing more is known than its cells."""

    lists_failures = False
    """Whether the details list every trial without a figure; otherwise findings name them."""
    picture = ""
    """What shows the answer on the page before its rows: law, capacity, changes or throughput."""
    answers_by_server = False
    """Whether each server has an answer of its own."""
    charts: tuple[str, ...] = ()
    """Lead of the page's first chapter."""

    def analysed(self, part: PartView) -> PartView:
        return part

    def ranking(self, part: PartView) -> list[CellView]:
        """Its cells as the answer shows them: those with a figure first."""
        return sorted(part.cells, key=lambda cell: cell.figure(part.headline_figure) is None)

    def winner(self, part: PartView, figure: str) -> str | None:  # noqa: ARG002
        """The server shown to be better than every other; None if servers are not ranked."""
        return None

    def sentences(self, part: PartView, most: int = MOST_SENTENCES) -> tuple[str, ...]:
        """What holds of it, the first thing first."""
        if part.trials:
            return self.measured(part, most)
        return (f"Not run: {part.skipped[0].why}" if part.skipped else "Not run",)

    def measured(self, part: PartView, most: int) -> tuple[str, ...]:  # noqa: ARG002
        return of_cells(part)

    def cross_check(self, part: PartView) -> dict[str, Any] | None:  # noqa: ARG002
        """Other load generators in the JSON of a cross-check."""
        return None

    @abstractmethod
    def blocks(self, part: PartView) -> list[Block]:
        """Its tables and sentences."""

    def everything(self, part: PartView) -> list[Block]:
        """The same with what shared processes did."""
        return [*self.blocks(part), *shared_blocks(part)]

    @abstractmethod
    def chapters(self, part: PartView) -> list[Chapter | str]:
        """Chapters of its page; a string names a chapter of charts."""


def of_cells(part: PartView) -> tuple[str, ...]:
    """A sentence for the cell of a part without pairs; of several, where the figure is highest and lowest."""
    figure = part.headline_figure
    spreads = [(spread, cell) for cell in part.cells if (spread := cell.figure(figure)) is not None]
    if len(spreads) < 2:
        return tuple(_of_cell(cell, spread) for spread, cell in spreads)
    spreads.sort(key=lambda pair: pair[0].median)
    least, most = (
        f"{cell.label}: {over_trials(figure, spread, spread.median)}"
        for spread, cell in (spreads[0], spreads[-1])
    )
    return (f"Of {len(spreads)} cells {label_of(figure)} is highest in {most}, and lowest in {least}",)


def _of_cell(cell: CellView, spread: Spread) -> str:
    figure, off = cell.headline_figure, cell.uncertainty(cell.headline_figure)
    unit, of = ("requests/s", "") if figure == HEADLINE else ("ms", f"{label_of(figure)} ")

    def written(value: float) -> str:
        return f"{over_trials(figure, spread, value)} {unit}"

    value = written(spread.median)
    if off is not None:
        value = figure_good_to(spread.median, *off.worst, written, ", good to ")
    bound = f"; bound by {cell.bound_words}" if cell.bound_words else ""
    return f"{of}{value}{bound}"


def steps_chapter(tables: Sequence[Block]) -> Chapter:
    lead = "Requests per step over the window; service times, median over trials; failed is the sum."
    return Chapter("steps", "Steps", tuple(tables), lead)


def left_out(part: PartView) -> tuple[Lines, ...]:
    reasons: dict[str, list[str]] = {}
    for skipped in () if part.failure else part.skipped:
        reasons.setdefault(skipped.why, []).append(skipped.cell)
    lines = tuple(
        f"{counted(len(cells), 'cell')}, such as {cells[0]}: {why}"
        if len(cells) > 1
        else f"{cells[0]}: {why}"
        for why, cells in reasons.items()
    )
    return (Lines("Not run", lines, style="yellow"),) if lines else ()


def shared_views(cells: Sequence[CellView], sharing: Sharing | None) -> tuple[SharedView, ...]:
    """By the figure that loads are about, and by workload, unless workloads shared processes too."""
    if sharing is None:
        return ()
    groups: dict[tuple[str, str], list[CellView]] = {}
    for cell in cells:
        workload = cell.cell.trial.workload.name if sharing == "loads" else ""
        groups.setdefault((workload, compared_figure(cell.cell.trial.load)), []).append(cell)
    return tuple(
        made
        for (workload, figure), group in groups.items()
        if (made := _view(workload, figure, group, sharing))
    )


def _view(workload: str, figure: str, cells: Sequence[CellView], sharing: Sharing) -> SharedView | None:
    samples = load_samples(cells, figure, sharing)
    order = order_effects(samples)
    if order is None:
        return None
    sweeps: dict[str, dict[str, None]] = {}
    for cell in cells:
        names = sweeps.setdefault(cell.cell.trial.workload.name, {})
        names[name_within(cell.cell, sharing)] = None
    ratios = load_ratios(samples, *(list(names) for names in sweeps.values()))
    return filled(SharedView, order, workload=workload, figure=figure, ratios=ratios)


def load_samples(cells: Sequence[CellView], figure: str, sharing: Sharing) -> list[LoadSample]:
    """Trials that shared processes and have the figure."""
    samples = [_sample(cell, trial, figure, sharing) for cell in cells for trial in cell.counting]
    return [sample for sample in samples if sample is not None]


def _sample(cell: CellView, trial: TrialView, figure: str, sharing: Sharing) -> LoadSample | None:
    """None for a trial with a process of its own, or without the figure."""
    process, value = trial.record.process, trial.figure(figure)
    if process is None or value is None or value <= 0:
        return None
    load = name_within(cell.cell, sharing)
    return LoadSample(cell.cell.server, process.id, load, value, process.place, process.after)


def shared_blocks(part: PartView) -> list[Block]:
    several = len(part.workloads) > 1
    made: list[Block] = []
    for view in part.shared:
        where = _where(view, several)
        lines = tuple(where + _ratio_words(view.figure, ratio) for ratio in view.ratios)
        if lines:
            note = "each load ÷ the preceding load in the plan, paired by process"
            made.append(Lines("From load to load", lines, note=note))
    words = tuple(_where(view, several) + order_words(view) for view in part.shared)
    of = "workloads and loads" if part.part.share_process == "workloads" else "loads"
    return [*made, Lines(f"The order of {of} in a process", words)] if words else made


def _where(view: SharedView, several: bool) -> str:
    return f"{view.workload}: " if several and view.workload else ""


def _ratio_words(figure: str, r: LoadRatio) -> str:
    known = r.low is not None and r.high is not None
    interval = f"[{ratio(r.low)}, {ratio(r.high)}]" if known else "no interval"
    over = counted(r.processes, "process", "processes")
    return (
        f"{r.server}, {label_of(figure)}, {r.load} ÷ {r.other}: {ratio(r.ratio)} {interval} "
        f"({over}{'' if r.paired else ', not paired'})"
    )


def order_words(view: SharedView) -> str:
    over = f"{label_of(view.figure)} over {view.trials} trials in {view.processes} processes"
    parts = []
    if (place := view.place) is not None:
        parts.append(f"{_percent(place.ratio)} % per place [{_percent(place.low)}, {_percent(place.high)}]")
    if view.carry_over is not None:
        parts.append(_carry_over_words(view.carry_over))
    if not parts:
        return f"{over}: too few to tell whether the order matters."
    if not view.found:
        return f"{over}: {'; '.join(parts)}. No effect detected."
    return (
        f"{over}: {'; '.join(parts)}. An effect: all servers had the same order in each block, so it cancels "
        "in their ratios where it is alike, and is in their budget where it is not; from load to load, and "
        "in the figures, it is not corrected."
    )


def _carry_over_words(carry_over: CarryOver) -> str:
    test = f"preceding load: p = {carry_over.p_value:.2g}"
    if not carry_over.found:
        return test
    interval = f"[{_percent(carry_over.low)}, {_percent(carry_over.high)}]"
    return f"{test}, after {carry_over.after} {_percent(carry_over.ratio)} % {interval}"


def _percent(value: float) -> str:
    return f"{(value - 1) * 100:+.1f}"
