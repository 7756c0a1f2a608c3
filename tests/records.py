"""A record of a trial around its evidence, where nothing else about it matters."""

from __future__ import annotations

from datetime import UTC, datetime

from prony.evidence.trial import Evidence, TrialRecord


def record(evidence: Evidence, failure: str | None = None) -> TrialRecord:
    """Of the first trial of a server."""
    at = datetime(2026, 11, 27, tzinfo=UTC)
    return TrialRecord(
        id="e-1",
        experiment_id="e",
        server="tomcat",
        workload="hello",
        load_name="10 users",
        block=0,
        position=0,
        seed=1,
        started_at=at,
        ended_at=at,
        fingerprint_key="abc",
        evidence=evidence,
        failure=failure,
    )
