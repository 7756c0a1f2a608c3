"""What follows from a trial: a server that died is one clear cause, not ten missing windows."""

from __future__ import annotations

from datetime import UTC, datetime

from prony.evidence.trial import Evidence, TrialRecord
from prony.experiment.conclude import conclude
from prony.judge.finding import Status
from tests.judge.factory import healthy


def record(evidence: Evidence, failure: str | None) -> TrialRecord:
    now = datetime.now(UTC)
    return TrialRecord(
        id="x-001", experiment_id="x", server="s", workload="w", load_name="closed-10", block=0, position=0,
        seed=1, started_at=now, ended_at=now, evidence=evidence, failure=failure, fingerprint_key="k",
    )  # fmt: skip


def test_a_server_that_died_is_invalid_for_that_reason() -> None:
    broken = healthy().model_copy(update={"server_window": None, "host_window": None})
    ended = conclude(record(broken, "the server ended under load: signal 9 (SIGKILL)"))
    assert ended.judgement.verdict is Status.INVALID
    assert ended.judgement.worst is not None
    assert "SIGKILL" in ended.judgement.worst.reason
    assert ended.printable_per_s is None
    assert not [f for f in ended.judgement.findings if f.status is Status.UNKNOWN]


def test_a_healthy_trial_is_printed() -> None:
    ended = conclude(record(healthy(), None))
    assert ended.judgement.verdict is Status.VALID
    assert ended.printable_per_s == ended.figures["requests_per_s"]
