"""The effect of a trial's position in its block, in words. Pure."""

from __future__ import annotations

from prony.compare import Comparison
from prony.compare.position import PositionEffect
from prony.compare.worst import POSITION
from prony.report.labels import label_of
from prony.report.result import PositionView
from prony.report.uncertain import bends


def position_view(compared: Comparison, effect: PositionEffect, where: str = "") -> PositionView:
    """The effect with what it does to the ratios."""
    return PositionView(
        figure=compared.figure,
        ratio_per_place=effect.ratio,
        low=effect.low,
        high=effect.high,
        trials=effect.trials,
        found=effect.found,
        sentence=f"{where}: {_words(compared, effect)}" if where else _words(compared, effect),
        where=where,
    )


def _words(compared: Comparison, effect: PositionEffect) -> str:
    numbers = ", ".join(f"{(end - 1) * 100:+.1f}" for end in (effect.low, effect.high))
    text = (
        f"Position in the block changes {label_of(compared.figure)} by {(effect.ratio - 1) * 100:+.1f} % per "
        f"place [{numbers}] (95 %, {effect.trials} trials)"
    )
    if not effect.found:
        return f"{text}: no effect found."
    moved = [
        (pair, source.bias) for pair in compared.pairs for source in pair.sources if source.name == POSITION
    ]
    if not moved:
        return f"{text}: an effect. The order was balanced, so it cancels in the ratios and widens intervals."
    by = ", ".join(f"{pair.a} ÷ {pair.b} by {bends(bias.low, bias.high)}" for pair, bias in moved)
    return f"{text}: an effect. The order was not balanced, so it is in the budget: it may move {by}."
