"""The order of runs: interleaved rounds, each shuffled anew."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.cases import Case
from bench.tools import LoadGenerator


@dataclass(frozen=True, slots=True)
class Turn:
    """One run that is due."""

    round: int
    case: Case
    tool: LoadGenerator


def turns(cases: Sequence[Case], tools: Sequence[LoadGenerator], rounds: int, seed: int) -> Iterator[Turn]:
    """Every tool in every case that takes it, once per round. Tools of one case follow each other, so that
    what drifts over minutes is the same for those that are compared.
    """
    draw = random.Random(seed)
    for number in range(1, rounds + 1):
        for case in draw.sample(list(cases), len(cases)):
            taken = [tool for tool in tools if case.takes(tool.name)]
            for tool in draw.sample(taken, len(taken)):
                yield Turn(number, case, tool)
