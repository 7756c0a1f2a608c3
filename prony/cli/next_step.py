"""The next step as a command line: the typed command with the number that settles more."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prony import redaction
from prony.compare.claim import Claim
from prony.compare.noninferiority import Change

if TYPE_CHECKING:
    from prony.report.result import PartView, ResultView

MOST_TRIALS = 100
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
    elif view.planned > len(view.trials):
        words = []
    else:
        words = _more_trials(part, typed) if typed[0] in WITH_TRIALS else _longer(part, typed)
    line = shlex.join(["prony", *words]) if words else ""
    return line if redaction.text(line) == line else ""


def _more_trials(part: PartView, typed: Sequence[str]) -> list[str]:
    """The number of trials that settles the first open pair of the headline figure."""
    blocks = [
        pair.settles.blocks
        for pair in part.pairs
        if pair.figure == part.headline_figure
        and pair.claim is Claim.OPEN
        and pair.settles is not None
        and pair.settles.what == "blocks"
        and pair.settles.blocks
    ]
    trials = max((cell.cell.trials for cell in part.cells), default=0) + min(blocks, default=0)
    return _with(typed, ("--trials",), str(trials)) if blocks and trials <= MOST_TRIALS else []


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
