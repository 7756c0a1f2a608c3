"""Servers x trials of one load, in randomised blocks: what `prony compare` ran until it built a `Plan`."""

from __future__ import annotations

import random
from typing import Self

from pydantic import Field, model_validator

from prony.evidence.base import Record
from prony.plan.load import Load
from prony.plan.trial import CONFORMANCE_S, TrialPlan, pinned


class ExperimentPlan(Record):
    """Servers x trials, in randomised blocks: every block holds one trial of each server."""

    title: str
    servers: tuple[str, ...] = Field(min_length=1)
    trial: TrialPlan
    trials: int = Field(ge=1)
    controls: int = 0
    """Extra trials per server that are pinned from the start: do both ways of warming up agree?"""
    until_clear: int | None = Field(default=None, ge=1)
    """After `trials` blocks add blocks, up to so many, until every pair is clear; the intervals then hold at
    every look (docs/method.md). None: exactly `trials`.
    """
    band: float = Field(default=0.02, gt=0, lt=1)
    """Servers whose ratio is surely nearer to 1 than this are equivalent: no practical difference."""
    own_loads: dict[str, Load] = Field(default_factory=dict)
    """Loads of single servers, in place of the trial's: a share of each one's own capacity."""
    quick: bool = False
    seed: int = 0

    @model_validator(mode="after")
    def _last_look_after_the_first(self) -> Self:
        if self.until_clear is not None and not 3 <= self.trials <= self.until_clear:
            raise ValueError(
                f"until_clear is {self.until_clear} and trials is {self.trials}; expected a first look after "
                "at least 3 trials, and not after the last"
            )
        return self

    def order(self) -> list[tuple[int, int, str]]:
        """(block, position, server) in the order in which they run, drawn from the seed."""
        source = random.Random(self.seed)
        rows: list[tuple[int, int, str]] = []
        for block in range(self.most_trials):
            servers = list(self.servers)
            source.shuffle(servers)
            rows += [(block, position, server) for position, server in enumerate(servers)]
        return rows

    @property
    def most_trials(self) -> int:
        """Trials per server at the most."""
        return self.until_clear or self.trials

    @property
    def estimate_s(self) -> float:
        """About how long the whole experiment takes at the most, builds apart."""
        controlled = self.trial.model_copy(update={"warm_up": pinned(self.trial.warm_up)}).estimate_s
        trials = len(self.servers) * self.most_trials * self.trial.estimate_s
        conformance = len(self.servers) * CONFORMANCE_S
        return trials + len(self.servers) * self.controls * controlled + conformance + 6
