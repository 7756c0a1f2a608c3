"""The loads before and after the measured load: preparation, clean-up, stages, scaling probe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from prony.evidence.engine import EngineReport
from prony.evidence.trial import LoadFacts, ScalingProbe, StageReport
from prony.load.base import StartEngine
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.load.short import GRACE_S, WalkedOnce, complaint, walk_once
from prony.plan import captured_values
from prony.plan.load import ClosedLoad
from prony.plan.script import Script
from prony.plan.stage import Stage
from prony.plan.trial import TrialPlan
from prony.plan.workload import Workload
from prony.steady.detector import full_rows

MORE_USERS = 1.5


@dataclass(slots=True)
class Preparation:
    """Preparation and clean-up of a load on a server."""

    load: EngineLoad
    start: StartEngine = EngineRun
    script: Script | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    done: bool = False
    """Whether there is something to clean up."""
    called: list[StageReport] = field(default_factory=list)
    """Reports with output of the script."""

    @property
    def prepared(self) -> Workload:
        """The workload with the captured values of its preparation."""
        return captured_values.knowing(self.load.workload, self.values)

    def prepare(self) -> str | None:
        """Run the preparation; the fault in a clause, None if every response was as declared."""
        walked = walk_once(self.load, self.load.workload.prepare, script=self.script, start=self.start)
        self._keep("before", walked)
        self.values, self.done = walked.values, walked.wrong is None
        return walked.wrong

    def clean_up(self) -> str | None:
        """Run the clean-up with the captured values; the fault in a clause."""
        walked = walk_once(
            self.load, self.load.workload.cleanup, values=self.values, script=self.script, start=self.start
        )
        self._keep("after", walked)
        return walked.wrong

    def _keep(self, name: str, walked: WalkedOnce) -> None:
        if walked.report is not None and walked.report.script is not None:
            self.called.append(StageReport.model_validate({"name": name, "report": walked.report}))


def offer_stage(
    around: EngineLoad, stage: Stage, name: Literal["before", "after"], start: StartEngine = EngineRun
) -> StageReport:
    """Run a stage to its end, with connections like the load's. Raises EnvironmentFault."""
    load = around.unmeasured(
        stage.bound_s,
        workload=stage.workload,
        load=stage.loads,
        script=None,
        log=None if around.log is None else stage_log(around.log, name),
        report=stage.gives,
    )
    return StageReport(name=name, report=start(load).run_to_end(stage.bound_s + GRACE_S))


def stage_log(log: Path, name: str) -> Path:
    """The request log of a stage, next to that of the measured load."""
    return log.with_name(f"{log.stem}.{name}{log.suffix}")


def stage_notes(stages: tuple[StageReport, ...]) -> tuple[str, ...]:
    """A note per failed stage."""
    wrong = ((stage.name, complaint(stage.report)) for stage in stages)
    return tuple(f"the load {name} the measured one failed: {why}" for name, why in wrong if why is not None)


def probed(plan: TrialPlan, facts: LoadFacts, *, owned: bool) -> bool:
    """Whether a capacity is claimed of a server that Prony launched; others get no more users."""
    return owned and facts.claim == "capacity" and plan.probe_s > 0


def scaling_probe(load: EngineLoad, seconds: float, start: StartEngine) -> ScalingProbe:
    """Run it; rows count from the second row on, when connections are open. Raises EnvironmentFault."""
    assert isinstance(load.load, ClosedLoad), "only a closed load claims a capacity"
    users = max(load.load.users + 1, round(load.load.users * MORE_USERS))
    bounds = {
        "load": ClosedLoad(users=users),
        "after_s": seconds,
        "total_requests": None,
        "iterations_per_user": None,
        "window": "all",
        "marks": (),
        "rate_groups": None,
        "parts": False,
        "log": None,
    }
    report = start(load.model_copy(update=bounds)).run_to_end(seconds + GRACE_S)
    rows = full_rows(report.rows)[1:]
    return ScalingProbe(
        users=users,
        rates_per_s=tuple(row.completed_per_s for row in rows),
        failed_share=_failed_share(report),
        client_cpu=_client_cpu(report),
    )


def _client_cpu(report: EngineReport) -> float | None:
    threads = report.window.threads if report.window is not None else ()
    shares = [share for thread in threads if (share := thread.busy_share) is not None]
    return max(shares) if shares and len(shares) == len(threads) else None


def _failed_share(report: EngineReport) -> float:
    ended = report.totals.completed + report.totals.failed
    return report.totals.failed / ended if ended else 1.0
