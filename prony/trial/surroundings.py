"""What stays the same for all trials of an experiment: CPUs and limits. Must not know any single trial."""

from __future__ import annotations

from dataclasses import dataclass

from prony.evidence.host import CpuPartition, Limits


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The host as the trials find it. `limits` are those towards the server (`ServerUnderTest.limits`)."""

    partition: CpuPartition
    limits: Limits

    @property
    def all_cpus(self) -> tuple[int, ...]:
        """Every CPU that server and client may use between them."""
        return tuple(sorted({*self.partition.server, *self.partition.client}))
