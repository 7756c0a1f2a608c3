"""Which trials of a figure count, server by server, and why the others do not. Must not know ratios or
verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prony.compare.exclusion import Side
from prony.compare.summary import Summary, summary


class Sample(NamedTuple):
    """One figure of one trial. `host` is the fingerprint's key; empty means: all on one host."""

    server: str
    block: int
    value: float | None
    valid: bool = True
    why: str = ""
    """Why it is not valid."""
    host: str = ""
    disturbed: bool = False
    """Excluded for a cause outside the trial (another process, the host), which says nothing about the
    server.
    """
    suspect: bool = False
    """The trial counts; the pair is also given without it where that makes a difference."""
    position: int | None = None
    """Place within the block, from 0; None where the order is not known."""


@dataclass(frozen=True, slots=True)
class ServerValues:
    """One server's trials: those that count, and why the others were excluded."""

    server: str
    values: tuple[float, ...]
    blocks: tuple[int, ...]
    hosts: frozenset[str]
    excluded: tuple[str, ...]
    excluded_blocks: tuple[int, ...]
    """Blocks of the trials excluded for what happened in them."""
    excluded_values: tuple[float | None, ...]
    """What those trials measured; None where they have no figure."""
    suspects: tuple[bool, ...]
    """For each of `values`, whether its trial is suspect."""
    positions: tuple[int | None, ...]
    """For each of `values`, the trial's place within its block."""
    summary: Summary | None

    @property
    def side(self) -> Side:
        """The input of the exclusion rule."""
        return Side(self.server, self.values, self.blocks, self.excluded_blocks, self.excluded_values)

    def without_suspects(self) -> tuple[list[float], list[int]]:
        """Values and blocks of the trials that are not suspect."""
        kept = [at for at, suspect in enumerate(self.suspects) if not suspect]
        return [self.values[at] for at in kept], [self.blocks[at] for at in kept]


def gather(trials: Sequence[Sample], servers: Sequence[str]) -> list[ServerValues]:
    """Each server's trials, `servers` first and in this order."""
    order = list(dict.fromkeys([*servers, *(trial.server for trial in trials)]))
    gathered = []
    for server in order:
        mine = [trial for trial in trials if trial.server == server]
        causes = [(trial, _cause(trial)) for trial in mine]
        kept = [(trial.value, trial) for trial, cause in causes if cause is None and trial.value is not None]
        values = tuple(float(value) for value, _ in kept)
        informative = [trial for trial, cause in causes if cause is not None and not trial.disturbed]
        gathered.append(
            ServerValues(
                server=server,
                values=values,
                blocks=tuple(trial.block for _, trial in kept),
                hosts=frozenset(trial.host for _, trial in kept),
                excluded=tuple(
                    f"trial of block {trial.block} excluded: {cause}"
                    for trial, cause in causes
                    if cause is not None
                ),
                excluded_blocks=tuple(trial.block for trial in informative),
                excluded_values=tuple(_positive(trial.value) for trial in informative),
                suspects=tuple(trial.suspect for _, trial in kept),
                positions=tuple(trial.position for _, trial in kept),
                summary=summary(values),
            )
        )
    return gathered


def _cause(trial: Sample) -> str | None:
    """Why a trial is excluded; None when it counts."""
    if not trial.valid:
        return trial.why or "judged invalid"
    if trial.value is None or not math.isfinite(trial.value):
        return "the figure is missing"
    if trial.value <= 0:
        return f"the figure is {trial.value:g}: no ratio"
    return None


def _positive(value: float | None) -> float | None:
    """As a value that has a logarithm, or None."""
    return float(value) if value is not None and math.isfinite(value) and value > 0 else None


def confounded(a: ServerValues, b: ServerValues) -> bool:
    """Whether the host differs as well, so that the ratio cannot be attributed to the servers."""
    return a.hosts != b.hosts or len(a.hosts) > 1
