"""A figure's trials per server: those that count, with their budgets, and those without a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from prony.judge.finding import Bias

NO_BUDGET: Mapping[str, Bias] = MappingProxyType({})


class Sample(NamedTuple):
    """A figure of a trial. `host`: the fingerprint's key; empty where all ran on one host."""

    server: str
    block: int
    value: float | None
    conforms: bool = True
    why: str = ""
    """Why it does not conform, or has no figure."""
    host: str = ""
    position: int | None = None
    """Position within the block, from 0; None where not known."""
    budget: Mapping[str, Bias] = NO_BUDGET


class Missing(NamedTuple):
    block: int
    """From 0."""
    why: str

    def __str__(self) -> str:
        return f"block {self.block + 1}: {self.why}"


@dataclass(frozen=True, slots=True)
class ServerValues:
    server: str
    values: tuple[float, ...]
    blocks: tuple[int, ...]
    hosts: frozenset[str]
    missing: tuple[Missing, ...]
    missing_values: tuple[float, ...]
    """Values of non-conforming trials, which show how far a trial may lie."""
    positions: tuple[int | None, ...]
    """For each of `values`, the position within its block, ..."""
    after: tuple[str, ...]
    """... and the server of the trial before it; empty where there is none, or not known."""
    budgets: tuple[Mapping[str, Bias], ...]
    """For each of `values`, by source."""

    @property
    def trials(self) -> int:
        return len(self.values) + len(self.missing)


def gather(trials: Sequence[Sample], servers: Sequence[str]) -> list[ServerValues]:
    order = list(dict.fromkeys([*servers, *(trial.server for trial in trials)]))
    placed = [(trial.block, trial.position, trial.server) for trial in trials if trial.position is not None]
    before = {(server, block): last for (*_, last), (block, _, server) in pairwise(sorted(placed))}
    gathered = []
    for server in order:
        mine = [trial for trial in trials if trial.server == server]
        causes = [(trial, _cause(trial)) for trial in mine]
        kept = [(float(t.value), t) for t, cause in causes if cause is None and t.value is not None]
        values = tuple(value for value, _ in kept)
        gathered.append(
            ServerValues(
                server=server,
                values=values,
                blocks=tuple(trial.block for _, trial in kept),
                hosts=frozenset(trial.host for _, trial in kept),
                missing=tuple(Missing(t.block, cause) for t, cause in causes if cause is not None),
                missing_values=tuple(
                    filter(None, (_measured(t) for t, cause in causes if cause is not None))
                ),
                positions=tuple(trial.position for _, trial in kept),
                after=tuple(before.get((server, trial.block), "") for _, trial in kept),
                budgets=tuple(trial.budget for _, trial in kept),
            )
        )
    return gathered


def _cause(trial: Sample) -> str | None:
    if not trial.conforms:
        return trial.why or "not conforming"
    if trial.value is None or not math.isfinite(trial.value):
        return trial.why or "the figure is missing"
    if trial.value <= 0:
        return f"the figure is {trial.value:g}: no ratio"
    return None


def _measured(trial: Sample) -> float | None:
    value = trial.value
    return value if value is not None and math.isfinite(value) and value > 0 else None


def confounded(a: ServerValues, b: ServerValues) -> bool:
    """Whether hosts differ as well, so that the ratio cannot be attributed to the servers."""
    return a.hosts != b.hosts or len(a.hosts) > 1
