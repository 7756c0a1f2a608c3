"""The lines that name groups of users, and what was offered around the load."""

from __future__ import annotations

from prony.evidence.trial import PopulationFacts, StageReport
from prony.report.trial_tables import group_lines
from tests.judge.factory import healthy, part


def test_each_group_is_named_with_its_users() -> None:
    browse = PopulationFacts(name="browse", users=90, ramp_up_s=10, end_s=60)
    buy = PopulationFacts(name="buy", users=1, start_s=5, iterations_per_user=20)
    evidence = part(healthy(), "load", populations=(browse, buy))
    assert evidence.engine is not None
    evidence = evidence.model_copy(update={"stages": (StageReport(name="before", report=evidence.engine),)})
    lines = group_lines(evidence)
    assert lines[:2] == [
        "browse: 90 users, over 10 s, until 60 s",
        "buy: 1 user, from 5 s, 20 iterations each",
    ]
    assert lines[2].startswith("before the load: ")
    assert group_lines(healthy()) == []
