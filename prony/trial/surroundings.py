"""What stays the same for all trials of an experiment: CPUs, limits, and where its parts run."""

from __future__ import annotations

from dataclasses import dataclass, field

from prony.evidence.host import CpuPartition, Limits
from prony.trial.places import Local, Places


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The host as the trials find it. `limits` are those towards the server (`ServerUnderTest.limits`)."""

    partition: CpuPartition
    limits: Limits
    places: Places = field(default_factory=Local)

    @property
    def all_cpus(self) -> tuple[int, ...]:
        """Every CPU of the server's host that server and client may use between them."""
        if self.partition.apart:
            return self.partition.server
        return tuple(sorted({*self.partition.server, *self.partition.client}))
