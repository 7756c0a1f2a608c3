"""When a twin is acquitted, and what a neighbour explains: the rule by itself, on made-up findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prony.evidence.host import CpuPartition
from prony.judge.finding import Finding, Judgement, Status
from prony.judge.verdict import verdict_of
from prony.selftest.lies import twins
from prony.selftest.lies.model import Setup, Staged
from prony.selftest.lies.twins import acquit, weigh
from tests.judge import factory as f

QUIET, BUSY = 0.0, 0.3


def attempt(others: float = QUIET, **statuses: Status) -> Staged:
    """A trial with these findings, on a machine of which other processes take this share."""
    findings = tuple(
        Finding(check=check, status=status, limit="", reason=f"of {check}", source="", essential=True)
        for check, status in statuses.items()
    )
    evidence = f.part(f.healthy(), "host_window", others_on_server_cpus=others, others_on_client_cpus=0.0)
    return Staged(evidence, Judgement(verdict=verdict_of(findings), findings=findings, bound_by="cpu"), {})


def test_valid_at_once() -> None:
    told = weigh([attempt(errors=Status.VALID)])
    assert not told.stayed
    assert told.told == "valid"


def test_what_disappears_was_the_machines() -> None:
    told = weigh([attempt(steady=Status.SUSPECT), attempt(steady=Status.VALID)])
    assert not told.stayed
    assert told.told == "valid at attempt 2 (before that, this machine: steady)"


def test_what_stays_is_a_false_accusation() -> None:
    told = weigh([attempt(steady=Status.SUSPECT, client=Status.SUSPECT), attempt(steady=Status.INVALID)])
    assert told.stayed == {"steady": "of steady"}
    assert told.gone == ("client",)


def test_a_neighbour_in_every_attempt_explains_what_a_neighbour_does() -> None:
    told = weigh([attempt(BUSY, schedule=Status.SUSPECT)] * 4)
    assert not told.stayed
    assert told.told == "not valid on this busy machine: schedule"
    once_quiet = [attempt(BUSY, schedule=Status.SUSPECT), attempt(QUIET, schedule=Status.SUSPECT)]
    assert "schedule" in weigh(once_quiet).stayed


def test_on_one_cpu_client_and_server_are_each_others_neighbours() -> None:
    quiet = attempt(isolation=Status.SUSPECT, client=Status.SUSPECT, errors=Status.SUSPECT)
    shared = CpuPartition(server=(0,), client=(0,), shared=True)
    one_cpu = replace(quiet, evidence=quiet.evidence.model_copy(update={"partition": shared}))
    assert set(weigh([quiet] * 4).stayed) == {"isolation", "client", "errors"}
    assert set(weigh([one_cpu] * 4).stayed) == {"errors"}


@pytest.mark.parametrize("check", ["errors", "connections", "content", "counts", "arrivals"])
def test_a_neighbour_explains_nothing_else(check: str) -> None:
    assert check in weigh([attempt(BUSY, **{check: Status.SUSPECT})] * 4).stayed


def test_too_noisy_to_tell_is_no_accusation() -> None:
    assert not weigh([attempt(steady=Status.UNKNOWN)] * 4).stayed
    assert "client" in weigh([attempt(client=Status.UNKNOWN)] * 4).stayed
    assert "steady" in weigh([attempt(steady=Status.UNKNOWN), attempt(steady=Status.SUSPECT)]).stayed


def test_a_twin_is_staged_again_until_it_is_acquitted(monkeypatch: pytest.MonkeyPatch) -> None:
    results = iter([attempt(errors=Status.SUSPECT), attempt(errors=Status.VALID)])
    monkeypatch.setattr(twins, "stage", lambda _setup, _seed: next(results))
    monkeypatch.setattr(twins, "PAUSES_S", (0.0, 0.0, 0.0))
    monkeypatch.setattr(twins, "_acquitted", [])
    setup = Setup(serve=("--work", "77us"))
    assert acquit(setup).attempts == 2
    assert acquit(setup).attempts == 2, "it was staged again although it had been acquitted"


def test_four_attempts_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    staged: list[int] = []

    def guilty(_setup: Setup, seed: int) -> Staged:
        staged.append(seed)
        return attempt(errors=Status.SUSPECT)

    monkeypatch.setattr(twins, "stage", guilty)
    monkeypatch.setattr(twins, "PAUSES_S", (0.0, 0.0, 0.0))
    monkeypatch.setattr(twins, "_acquitted", [])
    assert acquit(Setup()).stayed == {"errors": "of errors"}
    assert staged == [1, 2, 3, 4]
