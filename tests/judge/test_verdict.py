"""The verdict rule: what decides, what is only said, and what a server that Prony does not own can still
prove.
"""

from __future__ import annotations

import pytest

from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.checks import CHECKS
from prony.judge.finding import Finding, Judgement, Status
from prony.judge.limits import CheckLimits
from prony.judge.verdict import judge, verdict_of
from tests.judge import factory as f


def statuses(judgement: Judgement) -> dict[str, Status]:
    return {finding.check: finding.status for finding in judgement.findings}


def finding(status: Status, essential: bool = False) -> Finding:
    return Finding(check="x", status=status, reason="r", essential=essential)


def test_a_healthy_trial_is_valid_in_every_check() -> None:
    judgement = judge(f.healthy())
    assert set(statuses(judgement).values()) == {Status.VALID}
    assert judgement.verdict is Status.VALID
    assert judgement.bound_by == "server-cpu"
    assert judgement.worst is None


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_a_healthy_open_loop_is_valid(arrivals: str) -> None:
    assert judge(f.open_model(arrivals)).verdict is Status.VALID


def test_checks_that_do_not_apply_are_left_out_not_passed() -> None:
    closed = statuses(judge(f.healthy()))
    assert not {"think", "schedule", "arrivals"} & closed.keys()
    opened = statuses(judge(f.open_model("poisson")))
    assert {"schedule", "arrivals"} <= opened.keys()
    assert "think" not in opened


def test_a_foreign_server_is_not_unknown_for_what_nobody_can_read() -> None:
    judgement = judge(f.by_url())
    found = statuses(judgement)
    assert found["bound_by"] is found["isolation"] is found["warm"] is Status.UNKNOWN
    assert found["identity"] is Status.UNKNOWN, "who listens there cannot be read, and that decides nothing"
    assert judgement.verdict is Status.VALID
    assert judgement.worst is None
    assert judgement.bound_by == "unknown"


@pytest.mark.parametrize("part", ["server_window", "host_window", "partition"])
def test_what_prony_could_have_read_of_its_own_server_is_essential(part: str) -> None:
    judgement = judge(f.healthy().model_copy(update={part: None}))
    assert judgement.verdict is Status.UNKNOWN
    assert judgement.worst is not None
    assert judgement.worst.essential


def test_an_unread_kernel_log_does_not_decide() -> None:
    judgement = judge(f.part(f.healthy(), "host_window", kernel_log_lines=None))
    assert statuses(judgement)["host"] is Status.UNKNOWN
    assert judgement.verdict is Status.VALID


def test_a_capacity_claim_of_three_seconds_is_unknown_a_protocol_run_is_not() -> None:
    short = f.window(f.healthy(), duration_s=3.0, completed=24_000, service_time=f.histogram(count=24_000))
    short = f.window(
        short,
        status={"200": 24_000},
        service_time_sum_s=30.0,
        in_flight_integral_s=30.0,
        clipped_cycle_s=30.0,
    )
    assert judge(short).verdict is Status.UNKNOWN
    protocol = f.engine(f.part(short, "load", claim="protocol"), reason="duration")
    assert judge(protocol).verdict is Status.VALID


def test_a_protocol_run_that_never_gets_level_is_doubtful_and_is_printed() -> None:
    """A published run of so many requests to a fresh process describes a warm-up, as it is asked to."""
    rising = f.rows([*f.noisy(4000, 45, 0.002), *f.noisy(8000, 7, 0.002)])
    cold = f.engine(f.healthy(), rows=rising)
    assert status_of(judge(cold), "steady") is Status.INVALID
    judged = judge(f.part(cold, "load", claim="protocol"))
    assert status_of(judged, "steady") is Status.SUSPECT
    assert judged.verdict is Status.SUSPECT


def status_of(judgement: Judgement, check: str) -> Status:
    return next(finding.status for finding in judgement.findings if finding.check == check)


def test_the_worst_status_wins() -> None:
    valid, suspect, invalid = finding(Status.VALID), finding(Status.SUSPECT), finding(Status.INVALID)
    unknown, vital = finding(Status.UNKNOWN), finding(Status.UNKNOWN, essential=True)
    assert verdict_of([valid, vital, suspect, invalid]) is Status.INVALID
    assert verdict_of([valid, vital, suspect]) is Status.SUSPECT
    assert verdict_of([valid, vital]) is Status.UNKNOWN
    assert verdict_of([valid, unknown]) is Status.VALID
    assert verdict_of([]) is Status.UNKNOWN


def test_worst_names_the_finding_that_decided() -> None:
    broken = f.window(f.healthy(), errors={"timeout": 5000}, failed=5000)
    judgement = judge(f.part(broken, "host_window", others_on_server_cpus=0.1))
    assert judgement.verdict is Status.INVALID
    assert judgement.worst is not None
    assert judgement.worst.check == "errors"


def test_nothing_at_all_is_unknown() -> None:
    bare = Evidence(load=LoadFacts(model="closed"), server=ServerIdentity(name="x"))
    judgement = judge(bare)
    assert judgement.verdict is Status.UNKNOWN
    assert Status.VALID not in statuses(judgement).values()


def test_every_finding_that_is_not_valid_says_why_and_what_to_do() -> None:
    """Also that checks, findings and files agree on their names."""
    broken = f.totals(f.window(f.healthy(), errors={"read": 9000}, failed=9000), eaddrnotavail=4)
    for one in judge(broken).findings:
        assert one.reason
        assert one.source
        if one.status in {Status.SUSPECT, Status.INVALID}:
            assert one.advice
    for check in CHECKS:
        found = check(f.healthy(), CheckLimits())
        assert found is None or found.check == check.name


def is_essential(name: str, evidence: Evidence) -> bool:
    (check,) = (check for check in CHECKS if check.name == name)
    return check.essential(evidence)


def test_essential_depends_on_what_is_claimed_and_owned() -> None:
    owned, foreign = f.healthy(), f.by_url()
    assert is_essential("bound_by", owned)
    assert not is_essential("bound_by", foreign)
    assert not is_essential("bound_by", f.part(owned, "load", claim="latency"))
    assert is_essential("schedule", f.open_model())
    assert not is_essential("host", owned)


def test_a_judgement_survives_json() -> None:
    judgement = judge(f.healthy())
    assert Judgement.model_validate_json(judgement.model_dump_json()) == judgement
    assert CheckLimits.model_validate_json(CheckLimits().model_dump_json()) == CheckLimits()
