"""What follows from a trial: a server that died is one clear cause, not ten missing windows."""

from __future__ import annotations

from prony.experiment.conclude import conclude
from tests.judge.factory import healthy
from tests.records import record


def test_a_server_that_died_does_not_conform_for_that_reason() -> None:
    broken = healthy().model_copy(update={"server_window": None, "host_window": None})
    ended = conclude(record(broken, "the server ended under load: signal 9 (SIGKILL)"))
    assert not ended.judgement.conforms
    (cause,) = ended.judgement.not_conforming
    assert (cause.check, cause.code) == ("identity", "ended_early")
    assert "SIGKILL" in cause.reason
    assert not {f.code for f in ended.judgement.findings} & {"unread", "no_window"}


def test_a_healthy_trial_conforms() -> None:
    ended = conclude(record(healthy(), None))
    assert ended.judgement.conforms
    assert ended.judgement.not_conforming == ()
    assert ended.figures["requests_per_s"] > 0
