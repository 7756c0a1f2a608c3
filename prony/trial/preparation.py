"""A workload's preparation and its clean-up: what the steps need to find on a server, and taking it back.

One user walks each of them once, in no figure. Must not know what is done in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prony.load.base import StartEngine
from prony.load.engine import EngineRun
from prony.load.short import walk_once
from prony.plan import given
from prony.plan.target import TlsOptions
from prony.plan.workload import Workload


@dataclass(slots=True)
class Preparation:
    """Around one use of a workload on one server."""

    workload: Workload
    url: str
    tls: TlsOptions
    start: StartEngine = EngineRun
    values: Mapping[str, str] = field(default_factory=dict)
    """What the preparation captured, by name."""
    done: bool = False
    """Whether there is something to take back."""

    @property
    def prepared(self) -> Workload:
        """The workload with what its preparation captured."""
        return given.knowing(self.workload, self.values)

    def prepare(self) -> str | None:
        """Walk the preparation; what was wrong in one clause, None when every response was as declared."""
        walked = walk_once(self.url, self.workload, self.workload.prepare, tls=self.tls, start=self.start)
        self.values, self.done = walked.values, walked.wrong is None
        return walked.wrong

    def clean_up(self) -> str | None:
        """Walk the clean-up, knowing what the preparation captured; what was wrong in one clause."""
        return walk_once(
            self.url,
            self.workload,
            self.workload.cleanup,
            tls=self.tls,
            values=self.values,
            start=self.start,
        ).wrong
