"""tail: the p99 of each second drifts while p50 and throughput stay."""

from __future__ import annotations

import numpy as np
import pytest

from prony.evidence.trial import Evidence
from prony.judge.checks.steady import steady
from prony.judge.checks.tail import tail
from prony.judge.finding import Finding, Status
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

LIMITS = CheckLimits()


def window_of(p99_ms: list[float], claim: str = "latency", rate: float = f.RATE) -> Evidence:
    """A window over exactly these rows."""
    made = [
        row.model_copy(update={"p99_ns": int(ms * 1e6)})
        for row, ms in zip(f.rows(f.noisy(rate, len(p99_ms), 0.005)), p99_ms, strict=True)
    ]
    base = f.engine(f.part(f.healthy(), "load", claim=claim), rows=tuple(made))
    return f.window(base, opened_ms=0.0, duration_s=float(len(p99_ms)))


def drifting(factor: float, rows: int = 12, noise: float = 0.03, seed: int = 1) -> list[float]:
    return [
        2.0 * factor ** (index / (rows - 1)) * wobble
        for index, wobble in enumerate(f.noisy(1.0, rows, noise, seed))
    ]


def found(evidence: Evidence) -> Finding:
    finding = tail(evidence, LIMITS)
    assert finding is not None
    return finding


def test_a_tail_that_triples_is_invalid_for_latency_and_suspect_for_capacity() -> None:
    finding = found(window_of(drifting(3.0)))
    assert finding.status is Status.INVALID
    assert finding.reason.startswith("p99 moved by +2")
    assert "the tail drifts" in finding.reason
    assert found(window_of(drifting(3.0), claim="capacity")).status is Status.SUSPECT


def test_the_penalty_of_a_plan_decides_what_is_a_step() -> None:
    """Half of the window at 1.5 times the p99, with a wobble: a step, unless steps must be far plainer."""
    steps = [ms * (1.5 if at >= 8 else 1.0) for at, ms in enumerate(drifting(1.0, rows=16))]
    assert "stepped" in found(window_of(steps)).reason
    stricter = tail(window_of(steps), CheckLimits.model_validate({"steady_penalty": 1e6}))
    assert stricter is not None
    assert "stepped" not in stricter.reason


def test_steady_sees_nothing_of_it() -> None:
    finding = steady(window_of(drifting(3.0, rows=30)), LIMITS)
    assert finding is not None
    assert finding.status is Status.VALID or finding.status is Status.UNKNOWN


def test_a_level_tail_is_valid_with_its_bound() -> None:
    finding = found(window_of(drifting(1.0)))
    assert finding.status is Status.VALID
    assert "trend of p99 over the window" in finding.reason


def test_noise_that_hides_a_drift_is_unknown_not_a_pass() -> None:
    finding = found(window_of(drifting(1.0, noise=0.3)))
    assert finding.status is Status.UNKNOWN
    assert "too noisy" in finding.reason


def test_users_who_still_come_are_no_drift() -> None:
    """A whole run of 60 s: p99 follows the users for 20 s, and is level from then on."""
    levels = [2.0 * min(1.0, (second + 1) / 20) for second in range(60)]
    p99_ms = [ms * wobble for ms, wobble in zip(levels, f.noisy(1, 60, 0.02), strict=True)]
    base = f.part(window_of(p99_ms), "load", ramp_up_s=20.0)
    assert base.engine is not None
    users = [min(f.USERS, 1 + second * f.USERS // 20) for second in range(60)]
    rows = [row.model_copy(update={"users": n}) for row, n in zip(base.engine.rows, users, strict=True)]
    assert found(base).status is Status.INVALID
    assert found(f.engine(base, rows=tuple(rows))).status is Status.VALID


def test_a_step_is_named_as_one() -> None:
    stepped = [2.0] * 8 + [3.2] * 8
    finding = found(window_of([ms * w for ms, w in zip(stepped, f.noisy(1, 16, 0.02), strict=True)]))
    assert finding.status is Status.SUSPECT
    assert "stepped" in finding.reason


@pytest.mark.parametrize(
    ("rows", "rate", "words"), [(4, 8000, "too short"), (12, 60, "its maximum")], ids=["short", "few"]
)
def test_what_cannot_be_told_is_unknown(rows: int, rate: float, words: str) -> None:
    finding = found(window_of(drifting(1.0, rows=rows), rate=rate))
    assert finding.status is Status.UNKNOWN
    assert words in finding.reason


def test_old_rows_without_a_p99_are_unknown() -> None:
    assert f.healthy().engine is not None
    bare = [row.model_copy(update={"p99_ns": None}) for row in f.rows([8000.0] * 52)]
    assert found(f.engine(f.healthy(), rows=tuple(bare))).status is Status.UNKNOWN


def test_a_schedule_that_changes_by_plan_is_not_asked() -> None:
    assert tail(f.part(f.open_model(), "load", phased=True), LIMITS) is None


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.2, 0.4])
def test_level_tails_are_hardly_ever_accused(noise: float) -> None:
    """The p99 of a second of 8,000 requests wobbles by 5 to 10 %; 300 windows of 9 to 30 seconds."""
    accused = 0
    for seed in range(300):
        rows = int(np.random.default_rng(seed).integers(9, 31))
        status = found(window_of(drifting(1.0, rows=rows, noise=noise, seed=seed))).status
        accused += status in {Status.SUSPECT, Status.INVALID}
    assert accused <= 3
