"""The next step as a command line: the typed command with the number that settles more."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prony import redaction
from prony.compare.capacity import End
from prony.compare.noninferiority import Change

if TYPE_CHECKING:
    from prony.report.result import PartView, ResultView

MOST_TRIALS, MOST_WINDOW_S = 100, 600.0
WITH_TRIALS = ("compare", "aa", "explain")
LONGER_S, FINE = 4, 0.05
"""Times the window of a single load, and the half-width of its figure from which it need not be longer."""


def next_step(view: ResultView, typed: Sequence[str]) -> str:
    """Empty where no number settles more, or the line has credentials. `typed`: words after `prony`."""
    if not typed or len(view.parts) != 1 or "--resume" in typed:
        return ""
    (part,) = view.parts
    if typed[0] == "gate" and view.state == "finished":
        words = _longer_budget(part, typed)
    elif typed[0] == "capacity":
        words = _more_search(part, typed, cut_short=view.state != "finished")
    elif view.planned > len(view.trials):
        words = []
    else:
        words = _more_trials(part, typed) if typed[0] in WITH_TRIALS else _longer(part, typed)
    line = shlex.join(["prony", *words]) if words else ""
    return line if redaction.text(line) == line else ""


def _more_trials(part: PartView, typed: Sequence[str]) -> list[str]:
    """The number of trials that settles the first open pair of the headline figure; else the window that
    shows a difference beyond it.
    """
    settles = [p.settles for p in part.pairs if p.figure == part.headline_figure and p.settles is not None]
    blocks = [one.blocks for one in settles if one.what == "blocks" and one.blocks]
    if blocks:
        trials = max((cell.cell.trials for cell in part.cells), default=0) + min(blocks)
        return _with(typed, ("--trials",), str(trials)) if trials <= MOST_TRIALS else []
    more_s = [one.seconds for one in settles if one.what == "load" and one.seconds]
    return _window(part, typed, 1, math.ceil(min(more_s))) if more_s else []


def _more_search(part: PartView, typed: Sequence[str], *, cut_short: bool) -> list[str]:
    """Of a search without an answer to its resolution; one that was interrupted is resumed."""
    if part.search is None:
        return []
    end, held, budget_s = part.search.result.end, part.search.result.held_per_s, part.part.budget_s
    if end is None and budget_s is not None and not cut_short:
        again = _with(typed, ("--start",), f"{held:.6g}") if held is not None else typed
        return _with(again, ("--budget",), f"{2 * budget_s / 60:g}m")
    if end is End.TRIALS and part.part.search is not None:
        return _with(typed, ("--search-trials",), str(2 * part.part.search.most_trials))
    return _window(part, typed, 2) if end is End.UNDECIDED else []


def _window(part: PartView, typed: Sequence[str], times: int, more_s: int = 0) -> list[str]:
    """With a longer window, where a trial has one."""
    planned = [cell.cell.trial.measured for cell in part.cells]
    lengths = [one.window_s for one in planned if one.kind == "steady" and one.windows == 1]
    window_s = times * max(lengths, default=math.inf) + more_s
    return _with(typed, ("--window",), f"{window_s:g}s") if window_s <= MOST_WINDOW_S else []


def _longer_budget(part: PartView, typed: Sequence[str]) -> list[str]:
    """A budget for a gate's first look or its margin, extrapolated from its blocks."""
    from prony.report.gate import blocks_for

    gate, first = part.gate, min((cell.cell.trials for cell in part.cells), default=0)
    if gate is None or gate.change is not Change.CANNOT_TELL or not gate.blocks:
        return []
    seen = max((r.smallest_margin or 0.0 for r in gate.figures), default=0.0)
    more = first if gate.blocks < first else blocks_for(gate, seen) if seen > gate.margin else None
    if more is None or more > MOST_TRIALS:
        return []
    records = [trial.record for trial in part.trials]
    took_s = (max(r.ended_at for r in records) - min(r.started_at for r in records)).total_seconds()
    return _with(typed, ("--budget",), f"{math.ceil(more * took_s / gate.blocks / 60)}m")


def _longer(part: PartView, typed: Sequence[str]) -> list[str]:
    """A longer window, where chance is the largest uncertainty of a single load."""
    if typed[0] != "load" or len(part.cells) != 1 or part.cells[0].cell.trial.measured.kind != "steady":
        return []
    (cell,) = part.cells
    off = cell.uncertainty(cell.headline_figure)
    ends = () if off is None else (off.low, off.high, off.bias_low, off.bias_high)
    if not ends or None in ends:
        return []
    low, high, bias_low, bias_high = (abs(end or 0.0) for end in ends)
    if max(low, high) <= max(FINE, bias_low, bias_high):
        return []
    longer = f"{LONGER_S * cell.cell.trial.measured_s:g}s"
    return _with(typed, ("--duration", "-d"), longer)


def _with(typed: Sequence[str], options: tuple[str, ...], value: str) -> list[str]:
    """The line with this option replaced."""
    kept, at = list(typed), 0
    while at < len(kept):
        name, equals, _ = kept[at].partition("=")
        if name in options:
            del kept[at : at + (1 if equals else 2)]
        else:
            at += 1
    return [*kept, options[0], value]
