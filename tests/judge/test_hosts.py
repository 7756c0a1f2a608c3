"""Several hosts: their healthy trial conforms, and a lost host is named before what follows from it."""

from __future__ import annotations

from prony.experiment.conclude import conclude
from prony.judge.judging import judge
from tests.judge import factory as f
from tests.report import factory


def test_healthy_hosts_conform_and_rest_on_nothing() -> None:
    judged = judge(f.on_hosts())
    assert judged.conforms
    assert judged.provided == ()


def test_a_lost_host_is_the_cause_and_no_server_is_blamed() -> None:
    told = "load1 was lost: its worker has ended"
    gone = f.host(f.on_hosts(3), "load1", lost=told).model_copy(update={"engine": None})
    record = factory.record("reference", 0, 0).model_copy(update={"evidence": gone, "failure": told})
    ended = conclude(record).judgement
    first = ended.not_conforming[0]
    assert (first.check, first.code, first.reason) == ("hosts", "lost", told)
    assert ended.finding("identity") is None
