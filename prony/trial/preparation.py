"""A workload's preparation and its clean-up: what the steps need to find on a server, and taking it back.

One user walks each of them once, in no figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prony.evidence.trial import StageReport
from prony.load.base import StartEngine
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.load.short import WalkedOnce, walk_once
from prony.plan import captured_values
from prony.plan.script import Script
from prony.plan.workload import Workload


@dataclass(slots=True)
class Preparation:
    """Around one load on one server."""

    load: EngineLoad
    start: StartEngine = EngineRun
    script: Script | None = None
    """What blocks of it call."""
    values: Mapping[str, str] = field(default_factory=dict)
    """What the preparation captured, by name."""
    done: bool = False
    """Whether there is something to take back."""
    called: list[StageReport] = field(default_factory=list)
    """Of what called the script: what it printed."""

    @property
    def prepared(self) -> Workload:
        """The workload with what its preparation captured."""
        return captured_values.knowing(self.load.workload, self.values)

    def prepare(self) -> str | None:
        """Walk the preparation; what was wrong in one clause, None when every response was as declared."""
        walked = walk_once(self.load, self.load.workload.prepare, script=self.script, start=self.start)
        self._keep("before", walked)
        self.values, self.done = walked.values, walked.wrong is None
        return walked.wrong

    def clean_up(self) -> str | None:
        """Walk the clean-up, knowing what the preparation captured; what was wrong in one clause."""
        walked = walk_once(
            self.load,
            self.load.workload.cleanup,
            values=self.values,
            script=self.script,
            start=self.start,
        )
        self._keep("after", walked)
        return walked.wrong

    def _keep(self, name: str, walked: WalkedOnce) -> None:
        if walked.report is not None and walked.report.script is not None:
            self.called.append(StageReport.model_validate({"name": name, "report": walked.report}))
