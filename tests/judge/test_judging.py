"""From findings to a judgement: what makes a trial not conform, what its figures rest on, and what a server
that Prony does not own can still prove.
"""

from __future__ import annotations

import pytest

from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.checks import CHECKS
from prony.judge.finding import Finding, Judgement, Kind
from prony.judge.judging import judge
from prony.judge.limits import CheckLimits
from tests.judge import factory as f


def of(judgement: Judgement, check: str) -> Finding:
    finding = judgement.finding(check)
    assert finding is not None, check
    return finding


def test_a_healthy_trial_conforms_and_rests_on_nothing() -> None:
    judgement = judge(f.healthy())
    assert judgement.conforms
    assert (judgement.not_conforming, judgement.provided) == ((), ())
    assert judgement.bound_by == "server-cpu"


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_a_healthy_open_loop_conforms(arrivals: str) -> None:
    judgement = judge(f.open_model(arrivals))
    assert judgement.conforms
    assert judgement.provided == ()


def test_checks_that_do_not_apply_are_left_out_not_passed() -> None:
    closed = {finding.check for finding in judge(f.healthy()).findings}
    assert not {"think", "schedule", "arrivals"} & closed
    opened = {finding.check for finding in judge(f.open_model("poisson")).findings}
    assert {"schedule", "arrivals"} <= opened
    assert "think" not in opened


def test_what_nobody_can_read_of_a_foreign_server_is_a_condition() -> None:
    judgement = judge(f.by_url())
    assert judgement.conforms
    assert judgement.bound_by == "unknown"
    resting = {finding.check for finding in judgement.provided}
    assert {"isolation", "warm", "identity", "bound_by"} <= resting
    assert of(judgement, "bound_by").of("capacity_per_s").high is None, "it may carry any more"


@pytest.mark.parametrize("part", ["server_window", "host_window", "partition"])
def test_what_could_not_be_read_of_an_own_server_is_a_condition(part: str) -> None:
    """A figure is never withheld for what was not read; it rests on it."""
    judgement = judge(f.healthy().model_copy(update={part: None}))
    assert judgement.conforms
    assert judgement.provided


def test_a_plateau_is_claimed_of_a_capacity_and_not_of_a_protocol() -> None:
    """Three seconds cannot tell what is to come; a published protocol claims no more than its own run."""
    count = int(f.RATE * 3)
    short = f.window(f.healthy(), duration_s=3.0, **f.counters(count), service_time=f.histogram(count))
    short = f.window(short, service_time_sum_s=30.0, in_flight_integral_s=30.0, clipped_cycle_s=30.0)
    rows = f.rows(f.noisy(f.RATE, 3, 0.003), first_s=int(f.OPENED_MS / 1000))
    short = f.engine(short, rows=rows)
    judgement = judge(short)
    assert of(judgement, "steady").code == "too_short"
    coming = judgement.plateau("requests_per_s")
    assert coming is not None
    assert (coming.low, coming.high) == (None, None)
    protocol = judge(f.engine(f.part(short, "load", claim="protocol"), reason="duration"))
    assert of(protocol, "steady").code == "protocol"
    assert protocol.plateau("requests_per_s") is None


def test_one_finding_that_does_not_conform_is_enough_and_the_cause_comes_first() -> None:
    """5,000 timeouts of 85,000 requests: and users are missing from the engine's books as well."""
    broken = f.window(f.healthy(), errors={"timeout": 5000}, failed=5000, clipped_cycle_s=90.0)
    judgement = judge(f.part(broken, "host_window", others_on_server_cpus=0.1))
    assert not judgement.conforms
    assert [one.check for one in judgement.not_conforming] == ["errors", "little"]
    assert of(judgement, "isolation").conforms


def test_nothing_at_all_does_not_conform() -> None:
    judgement = judge(Evidence(load=LoadFacts(model="closed"), server=ServerIdentity(name="x")))
    assert not judgement.conforms
    assert {one.code for one in judgement.not_conforming} == {"no_window"}


def test_every_finding_says_what_was_found_by_which_rule_and_where_it_fires_what_to_do() -> None:
    """Also that checks, findings and files agree on their names."""
    broken = f.totals(f.window(f.healthy(), errors={"read": 9000}, failed=9000), eaddrnotavail=4)
    judgement = judge(broken)
    assert len(judgement.not_conforming) >= 2
    for one in judgement.findings:
        assert one.reason
        assert one.source
        if one.kind is Kind.NOT_CONFORMING:
            assert one.advice
    for check in CHECKS:
        found = check(f.healthy(), CheckLimits())
        assert found is None or found.check == check.name


def test_limits_that_are_not_the_defaults_are_kept() -> None:
    limits = CheckLimits.model_validate({"errors_share_max": 0.2})
    broken = f.window(f.healthy(), errors={"timeout": 5000}, completed=75_000, failed=5000)
    assert of(judge(broken, limits), "errors").conforms
    assert judge(broken, limits).limits == {"errors_share_max": 0.2}
    assert not of(judge(broken), "errors").conforms
    assert judge(broken).limits == {}


def test_a_judgement_survives_json() -> None:
    judgement = judge(f.by_url())
    assert Judgement.model_validate_json(judgement.model_dump_json()) == judgement
    assert CheckLimits.model_validate_json(CheckLimits().model_dump_json()) == CheckLimits()
