"""Offers a load that ends before the measured one begins, or begins when the measured one has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from prony.evidence.trial import StageReport
from prony.load.base import StartEngine
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.load.short import GRACE_S, complaint
from prony.plan.stage import Stage


def offer_stage(
    around: EngineLoad, stage: Stage, name: Literal["before", "after"], start: StartEngine = EngineRun
) -> StageReport:
    """Run it to its end, towards the same server and over connections of the same kind as the load that it
    stands beside. Raises EnvironmentFault when the engine cannot do it.
    """
    load = around.unmeasured(
        stage.bound_s,
        workload=stage.workload,
        load=stage.loads,
        script=None,
        log=None if around.log is None else stage_log(around.log, name),
    )
    return StageReport(name=name, report=start(load).run_to_end(stage.bound_s + GRACE_S))


def stage_log(log: Path, name: str) -> Path:
    """Where the rows of a stage's requests are written: beside those of the measured load."""
    return log.with_name(f"{log.stem}.{name}{log.suffix}")


def stage_notes(stages: tuple[StageReport, ...]) -> tuple[str, ...]:
    """What must be said of them: nothing when every request was answered as declared."""
    wrong = ((stage.name, complaint(stage.report)) for stage in stages)
    return tuple(f"the load {name} the measured one failed: {why}" for name, why in wrong if why is not None)
