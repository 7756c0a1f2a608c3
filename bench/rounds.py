"""Order of runs: interleaved rounds, each in random order."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.cases import Case
from bench.tools import LoadGenerator


@dataclass(frozen=True, slots=True)
class Turn:
    """A run that is due."""

    round: int
    case: Case
    tool: LoadGenerator


def turns(cases: Sequence[Case], tools: Sequence[LoadGenerator], rounds: int, seed: int) -> Iterator[Turn]:
    """Every tool of every case, once per round. Tools of a case are consecutive, so that slow drift affects
    them alike.
    """
    draw = random.Random(seed)
    for number in range(1, rounds + 1):
        for case in draw.sample(list(cases), len(cases)):
            taken = [tool for tool in tools if case.takes(tool.name)]
            for tool in draw.sample(taken, len(taken)):
                yield Turn(number, case, tool)
