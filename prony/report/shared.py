"""Loads that shared processes: from load to load, paired by process, and what their order does. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from prony.analysis import compared_figure
from prony.compare.shared import CarryOver, LoadRatio, LoadSample, load_ratios, order_effects
from prony.plan.part import Sharing
from prony.plan.processes import name_within
from prony.report.blocks import Block, Lines
from prony.report.cell_view import CellView, TrialView
from prony.report.labels import label_of
from prony.report.out import filled
from prony.report.result import PartView, SharedView
from prony.report.wording import counted, ratio


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
    samples = [
        made
        for cell in cells
        for trial in cell.counting
        if (made := _sample(cell, trial, figure, sharing)) is not None
    ]
    order = order_effects(samples)
    if order is None:
        return None
    sweeps: dict[str, dict[str, None]] = {}
    for cell in cells:
        names = sweeps.setdefault(cell.cell.trial.workload.name, {})
        names[name_within(cell.cell, sharing)] = None
    ratios = load_ratios(samples, *(list(names) for names in sweeps.values()))
    return filled(SharedView, order, workload=workload, figure=figure, ratios=ratios)


def _sample(cell: CellView, trial: TrialView, figure: str, sharing: Sharing) -> LoadSample | None:
    """None for a trial with a process of its own, or without the figure."""
    process, value = trial.record.process, trial.figure(figure)
    if process is None or value is None or value <= 0:
        return None
    load = name_within(cell.cell, sharing)
    return LoadSample(cell.cell.server, process.id, load, value, process.place, process.after)


def blocks(part: PartView) -> list[Block]:
    several = len(part.workloads) > 1
    made: list[Block] = []
    for view in part.shared:
        where = _where(view, several)
        lines = tuple(where + _ratio_words(view.figure, one) for one in view.ratios)
        if lines:
            note = "each load ÷ the one before it in the plan, paired by process"
            made.append(Lines("From load to load", lines, note=note))
    words = tuple(_where(view, several) + order_words(view) for view in part.shared)
    of = "workloads and loads" if part.part.share_process == "workloads" else "loads"
    return [*made, Lines(f"The order of {of} in a process", words)] if words else made


def _where(view: SharedView, several: bool) -> str:
    return f"{view.workload}: " if several and view.workload else ""


def _ratio_words(figure: str, one: LoadRatio) -> str:
    known = one.low is not None and one.high is not None
    interval = f"[{ratio(one.low)}, {ratio(one.high)}]" if known else "no interval"
    over = counted(one.processes, "process", "processes")
    return (
        f"{one.server}, {label_of(figure)}, {one.load} ÷ {one.other}: {ratio(one.ratio)} {interval} "
        f"({over}{'' if one.paired else ', not paired'})"
    )


def order_words(view: SharedView) -> str:
    over = f"{label_of(view.figure)} over {view.trials} trials in {view.processes} processes"
    told = []
    if (place := view.place) is not None:
        told.append(f"{_percent(place.ratio)} % per place [{_percent(place.low)}, {_percent(place.high)}]")
    if view.carry_over is not None:
        told.append(_carry_over_words(view.carry_over))
    if not told:
        return f"{over}: too few to tell whether the order matters."
    if not view.found:
        return f"{over}: {'; '.join(told)}. No effect found."
    return (
        f"{over}: {'; '.join(told)}. An effect: all servers had the same order in each block, so it cancels "
        "in their ratios where it is alike; from load to load, and in the figures, it is not corrected."
    )


def _carry_over_words(found: CarryOver) -> str:
    test = f"which load came before: p = {found.p_value:.2g}"
    if not found.found:
        return test
    interval = f"[{_percent(found.low)}, {_percent(found.high)}]"
    return f"{test}, after {found.after} {_percent(found.ratio)} % {interval}"


def _percent(value: float) -> str:
    return f"{(value - 1) * 100:+.1f}"
