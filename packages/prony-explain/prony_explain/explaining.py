"""The profilers of an experiment: fetched before its first trial; a collector for each explained trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.errors import UsageError
from prony.plan.plan import Plan
from prony.store import Store, StoredTrial
from prony.targets import ServerUnderTest
from prony.targets.base import OnLine
from prony_explain.collector import Collector
from prony_explain.processes import Chosen
from prony_explain.profilers.base import Profiler, Unavailable, why


@dataclass(slots=True)
class Explaining:
    """Fetched profilers, and the collectors that use them."""

    _async_profiler: tuple[Path, str] | None = None
    """Folder of its libraries, and version."""
    _why: str = "async-profiler was not fetched"

    def prepare(self, targets: Sequence[ServerUnderTest], on_line: OnLine) -> None:
        """Fetches async-profiler for a JVM or unknown runtime. A failure is reported in the profile."""
        if any(target.built is None or target.built.jdk is not None for target in targets):
            self.fetch(on_line)

    def fetch(self, on_line: OnLine) -> None:
        """Fetch async-profiler."""
        from prony.server.build import async_profiler

        try:
            self._async_profiler = async_profiler(on_line)
        except Exception as fault:  # of any kind: the measurement must go on
            self._why = f"async-profiler could not be fetched: {why(fault, 'fetching it')}"

    def collector(self) -> Collector:
        """The collector of one explained trial."""
        return Collector(self._find)

    def explain(self, store: Store, experiment: str) -> None:
        """Store the explanation of each part with its last explained trial."""
        from prony.report.reading import load_result
        from prony_explain.report.view import stored

        for part in load_result(store, experiment).parts:
            records = [trial.record for cell in part.cells for trial in cell.explained]
            made = stored(part.cells)
            if made is not None:
                last = store.trial(max(records, key=lambda record: record.ended_at).id)
                record = last.record.model_copy(update={"explanation": made})
                store.complete_trial(record, last.judgement, last.figures)

    def _find(self, chosen: Chosen) -> Profiler:
        match chosen.runtime:
            case "jvm":
                from prony_explain.profilers.async_profiler import AsyncProfiler

                if self._async_profiler is None:
                    raise Unavailable(self._why)
                libraries, version = self._async_profiler
                return AsyncProfiler(chosen.pid, libraries, version)
            case "python":
                from prony_explain.profilers import py_spy
                from prony_explain.profilers.perf import Perf
                from prony_explain.profilers.with_kernel import WithKernel

                return WithKernel(py_spy.PySpy(chosen.pid), Perf((chosen.pid,)), py_spy.KERNEL)
            case "node":
                from prony_explain.profilers import node
                from prony_explain.profilers.perf import Perf
                from prony_explain.profilers.with_kernel import WithKernel

                return WithKernel(node.NodeProfiler(chosen.pid), Perf((chosen.pid,)), node.KERNEL)
            case "native":
                from prony_explain.profilers.perf import Perf

                return Perf(chosen.every)


def explained(plan: Plan, trials: Sequence[StoredTrial]) -> Plan:
    """The plan with an explained trial for each cell that was measured. Raises UsageError without one."""
    measured = {trial.record.cell for trial in trials if trial.record.kind == "trial"}
    cells = tuple(
        cell.model_copy(update={"explain": True}) if cell.id in measured else cell for cell in plan.cells
    )
    if not any(cell.explain for cell in cells):
        raise UsageError("the experiment has no measured trial to explain")
    return plan.model_copy(update={"cells": cells})
