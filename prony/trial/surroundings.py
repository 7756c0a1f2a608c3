"""What stays the same for all trials of an experiment: CPUs, limits, calibration.

Must not know any single trial.
"""

from __future__ import annotations

from dataclasses import dataclass

from prony.evidence.host import CpuPartition, Limits
from prony.evidence.trial import Calibration


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The bench on which trials run."""

    partition: CpuPartition
    limits: Limits
    calibration: Calibration | None = None
    control: bool = False
    """This trial is a control: pinned from the start."""

    @property
    def all_cpus(self) -> tuple[int, ...]:
        """Every CPU that server and client may use between them."""
        return tuple(sorted({*self.partition.server, *self.partition.client}))
