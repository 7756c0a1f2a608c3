"""Ctrl-C while something is measured: what was measured for a while is kept, a moment is not."""

from __future__ import annotations

import pytest

from prony.evidence.engine import IntervalRow
from prony.evidence.server import ServerIdentity
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.plan.load import ClosedLoad
from prony.plan.workload import from_url
from prony.server.foreign import ForeignServer
from prony.trial.session import Session
from tests.load.test_engine import Reference


class Impatient:
    """Presses Ctrl-C when so many rows have passed."""

    def __init__(self, rows: int) -> None:
        self.left = rows

    def phase(self, name: str, expected_s: float | None) -> None: ...

    def note(self, text: str) -> None: ...

    def row(self, row: IntervalRow) -> None:
        assert row.completed > 0
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def started(reference: Reference, rows: int, window: str, worth_keeping_s: float) -> Session:
    host, _, port = reference.url.removeprefix("http://").partition(":")
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
    session = Session(engine, ForeignServer(host, int(port)), Impatient(rows), worth_keeping_s)
    assert isinstance(session.subject.identity, ServerIdentity)
    session.start()
    return session


@pytest.mark.parametrize("window", ["commanded", "all"])
def test_what_was_measured_for_a_while_is_kept(window: str) -> None:
    reference = Reference("--delay", "fixed:5ms")
    try:
        session = started(reference, 2, window, 0.25)
        measured = session.measure(30.0) if window == "commanded" else session.follow(60.0)
        assert session.interrupted
        report = session.engine.report()
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
        session = started(reference, 1, "all", 3600.0)
        with pytest.raises(KeyboardInterrupt):
            session.follow(60.0)
        assert not session.interrupted
        session.engine.stop()
    finally:
        reference.finish()
