"""A ceiling is measured for each load, and again where a trial was faster: more than 100 % of a ceiling means
that the ceiling is wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.evidence.host import CpuPartition, Limits
from prony.evidence.trial import Calibration, Evidence
from prony.experiment import calibrating
from prony.experiment.calibrating import Calibrations, reference_load
from prony.judge.checks.client import ClientLimits, ceiling_decides, signals
from prony.load.reference import Certificate, ReferenceLoad
from prony.plan.load import ClosedLoad, Connections, WholeRun
from prony.plan.script import Script
from prony.plan.step import Step
from prony.plan.trial import TrialPlan
from prony.plan.workload import Workload
from prony.trial.surroundings import Surroundings
from tests.experiment.conftest import Notes
from tests.judge import factory as f

HELLO = Workload(name="hello", steps=(Step(name="hello", path="/"),))
HERE = Surroundings(CpuPartition(server=(0,), client=(1,)), Limits())
PLAN = TrialPlan(workload=HELLO, load=ClosedLoad(users=f.USERS), measured=WholeRun(duration_s=1.0))


class Measured:
    """Stands in for the engine: these ceilings, in turn."""

    def __init__(self, *ceilings_per_s: float) -> None:
        self.left = list(ceilings_per_s)
        self.asked: list[tuple[ReferenceLoad, bool, int]] = []

    def __call__(
        self, asked: ReferenceLoad, certificate: Certificate | None, times: int, **_where: object
    ) -> Calibration:
        self.asked.append((asked, certificate is not None, times))
        per_s = self.left.pop(0)
        return Calibration(
            ceiling_per_s=per_s / 2, client_cpu=0.5, body_bytes=f.BODY, duration_s=float(times)
        )


def measured(monkeypatch: pytest.MonkeyPatch, *ceilings_per_s: float) -> Measured:
    engine = Measured(*ceilings_per_s)
    monkeypatch.setattr(calibrating, "calibrate", engine)
    return engine


def test_one_load_is_calibrated_once_and_another_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, made = measured(monkeypatch, 60_000, 50_000), Calibrations()
    assert made.known(PLAN, f.healthy()) is None
    assert made.measure(PLAN, f.healthy(), Notes(), HERE) is not None
    assert made.known(PLAN, f.healthy()) is not None
    closing = PLAN.model_copy(update={"connections": Connections(keep_alive=False)})
    assert made.known(closing, f.healthy()) is None
    secured = f.part(f.healthy(), "load", tls=True)
    assert made.known(PLAN, secured) is None
    found = made.measure(PLAN, secured, Notes(), HERE)
    assert found is not None
    assert found.share_of(f.RATE) == pytest.approx(f.RATE / 50_000)
    assert [with_certificate for _, with_certificate, _ in engine.asked] == [False, True]


@pytest.mark.parametrize(("second", "exceeded"), [(60_000, False), (7_000, True)])
def test_a_ceiling_that_was_exceeded_is_measured_again_once(
    monkeypatch: pytest.MonkeyPatch, second: float, exceeded: bool
) -> None:
    """8,000/s were measured; a ceiling of 5,000/s is none."""
    engine, made, notes = measured(monkeypatch, 5_000, second), Calibrations(), Notes()
    found = made.measure(PLAN, f.healthy(), notes, HERE)
    assert found is not None
    assert (found.exceeded, found.share_of(f.RATE) is None) == (exceeded, exceeded)
    assert engine.asked[1][2] > engine.asked[0][2]
    assert made.known(PLAN, f.healthy()) == found, "a third measurement would say the same"
    assert len(engine.asked) == 2


def test_a_known_ceiling_that_a_later_trial_exceeds_is_measured_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured(monkeypatch, 9_000, 30_000)
    made = Calibrations()
    made.measure(PLAN, f.healthy(), Notes(), HERE)
    faster = f.window(f.healthy(), completed=100_000)
    assert made.known(PLAN, faster) is None
    found = made.measure(PLAN, faster, Notes(), HERE)
    assert found is not None
    assert not found.exceeded
    assert made.known(PLAN, f.healthy()) == found


def foreign(*cpus: int) -> Evidence:
    there = f.part(f.part(f.healthy(), "server", owned=False), "partition", server=(0, 1), client=(1,))
    return f.part(there, "server_window", cpus=cpus)


def test_the_reference_server_has_the_cpus_of_the_server() -> None:
    def cpus(evidence: Evidence) -> tuple[int, ...] | None:
        load = reference_load(PLAN, evidence)
        return None if load is None else load.server_cpus

    assert cpus(f.healthy()) == (0,)
    assert cpus(foreign(0)) == (0,)
    assert cpus(foreign(0, 1)) == (), "it may run where the client runs: the kernel places it"
    assert cpus(foreign()) is None
    assert cpus(foreign(0).model_copy(update={"server_window": None})) is None


def test_a_load_over_http2_is_calibrated_over_http2() -> None:
    """Also where a variant of the server says so, and not the load."""
    spoken = f.part(f.healthy(), "load", http_version="2")
    load = reference_load(PLAN, spoken)
    assert load is not None
    assert load.connections.http_version == "2"
    assert PLAN.connections.http_version == "1.1"


def test_what_the_reference_server_cannot_stand_in_for() -> None:
    assert reference_load(PLAN, f.healthy()) is not None
    scripted = PLAN.model_copy(update={"script": Script(file="x.lua")})
    assert reference_load(scripted, f.healthy()) is None
    assert reference_load(PLAN, f.part(f.healthy(), "load", transport="unix")) is None
    assert reference_load(PLAN, f.by_url()) is None


def test_a_ceiling_is_kept_for_later_experiments_of_this_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path))
    engine = measured(monkeypatch, 60_000)
    assert Calibrations("this").measure(PLAN, f.healthy(), Notes(), HERE) is not None
    kept = Calibrations("this")
    found = kept.known(PLAN, f.healthy())
    assert found is not None
    assert found.client_ceiling_per_s == 60_000
    assert Calibrations("other").known(PLAN, f.healthy()) is None
    many = PLAN.model_copy(update={"load": ClosedLoad(users=f.USERS + 1)})
    assert Calibrations("this").known(many, f.healthy()) is None
    monkeypatch.setattr(calibrating, "ROOM", f.RATE / 60_000 - 0.01)
    assert Calibrations("this").known(PLAN, f.healthy()) is None, "too near to it to rest on an old one"
    assert len(engine.asked) == 1


def test_a_ceiling_is_measured_where_it_can_change_what_the_client_did() -> None:
    healthy, limits = f.healthy(), ClientLimits()
    found, _ = signals(healthy, limits)
    assert len(found) >= 2
    assert not any(signal.over for signal in found)
    assert not ceiling_decides(healthy, limits)
    one_over = ClientLimits(client_cpu_max=1e-9)
    assert [signal.over for signal in signals(healthy, one_over)[0]].count(True) == 1
    assert ceiling_decides(healthy, one_over)
