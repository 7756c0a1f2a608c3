"""Ctrl-C while something is measured: what was measured for a while is kept, a moment is not."""

from __future__ import annotations

import math

import pytest

from prony.evidence.engine import IntervalRow
from prony.evidence.server import ServerIdentity
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.plan.load import ClosedLoad
from prony.plan.target import Url
from prony.plan.workload import from_url
from prony.targets import RunningExternal
from prony.trial.load_run import LoadRun, ServerEdge
from tests.load.test_engine import Reference


class Impatient:
    """Presses Ctrl-C at the first row after `at_ms` (engine's time) in which anything was answered."""

    def __init__(self) -> None:
        self.at_ms = math.inf

    def phase(self, name: str, expected_s: float | None) -> None: ...

    def note(self, text: str) -> None: ...

    def row(self, row: IntervalRow) -> None:
        if row.completed > 0 and row.t_ms > self.at_ms:
            self.at_ms = math.inf
            raise KeyboardInterrupt


class Watched(LoadRun):
    """Lets Ctrl-C be pressed `after_ms` into the measured part, however late that begins: at another time it
    would end pytest itself.
    """

    def __init__(self, engine: EngineRun, server: RunningExternal, worth_keeping_s: float, after_ms: float):
        self.impatient, self.after_ms = Impatient(), after_ms
        super().__init__(engine, server, self.impatient, worth_keeping_s)

    def _end(self, opened: ServerEdge, name: str, when: str, length_s: float) -> ServerEdge:
        self.impatient.at_ms = opened.t_ms + self.after_ms
        return super()._end(opened, name, when, length_s)


def started(reference: Reference, window: str, worth_keeping_s: float, after_ms: float) -> LoadRun:
    engine = EngineRun(
        EngineLoad.model_validate(
            {
                "url": reference.url,
                "workload": from_url("/"),
                "load": ClosedLoad(users=2),
                "cpus": (),
                "after_s": 60.0,
                "window": window,
            }
        )
    )
    run = Watched(engine, RunningExternal(Url(url=reference.url)), worth_keeping_s, after_ms)
    assert isinstance(run.server.identity, ServerIdentity)
    run.start()
    return run


@pytest.mark.parametrize("window", ["commanded", "all"])
def test_what_was_measured_for_a_while_is_kept(window: str) -> None:
    reference = Reference("--delay", "fixed:5ms")
    try:
        run = started(reference, window, 0.25, 300.0)
        measured = run.measure(30.0) if window == "commanded" else run.follow(60.0)
        assert run.interrupted
        report = run.engine.report()
        assert report.window is not None
        assert report.reason == "stopped"
        assert report.window.complete == (window == "all")
        assert report.window.completed > 0
        assert 0.25 < measured.closed.t_ms / 1000 - measured.opened.t_ms / 1000 < 30
    finally:
        reference.finish()


def test_a_moment_is_not_worth_keeping() -> None:
    reference = Reference()
    try:
        run = started(reference, "all", 3600.0, 0.0)
        with pytest.raises(KeyboardInterrupt):
            run.follow(60.0)
        assert not run.interrupted
        run.engine.stop()
    finally:
        reference.finish()
