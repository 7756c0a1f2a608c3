"""Conformance is asked of the first process that had its load, in the version of HTTP of that load."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from prony.evidence.conformance import Conformance
from prony.evidence.host import CpuPartition, Limits
from prony.experiment import testbed
from prony.experiment.trials import conformance_of
from prony.plan.load import ClosedLoad, Connections
from prony.plan.trial import TrialPlan
from prony.server.build import Built
from prony.server.catalogue import Catalogue
from prony.targets.base import RunningTarget
from prony.targets.launched import LaunchedServer
from prony.trial.surroundings import TrialObserver
from prony_conformance import suite
from tests.store.store_samples import FINGERPRINT
from tests.trial.test_targets import HELLO, SHORT

SERVER = "command: [x]\nvariants:\n  h2c: {http_version: '2'}\n"
LISTENER = cast(TrialObserver, SimpleNamespace(phase=lambda *_: None, note=lambda _: None))
TESTBED = testbed.Testbed(CpuPartition(server=(0,), client=(1,)), Limits(), FINGERPRINT)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The versions in which the suite was asked."""
    versions: list[str] = []

    def check(server: Any, workload: Any, **how: Any) -> Conformance:
        versions.append(how["http_version"])
        assert "streams" in how["only"]
        return Conformance(server=server.name, workload=workload.name, results=())

    monkeypatch.setattr(suite, "check", check)
    monkeypatch.setattr("prony.experiment.trials._known", {})
    return versions


def test_the_suite_is_asked_in_the_version_of_the_load(tmp_path: Path, asked: list[str]) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "server.yaml").write_text(SERVER)
    catalogue = Catalogue.load([tmp_path])
    plain, over_2 = (LaunchedServer(catalogue.resolve(name)) for name in ("one", "one:h2c"))
    for target in (plain, over_2):
        target.built = Built(target.spec)
    usual = TrialPlan(workload=HELLO, load=ClosedLoad(users=2), measured=SHORT)
    http_2 = usual.model_copy(update={"connections": Connections(http_version="2")})
    assert conformance_of(plain, usual, TESTBED, LISTENER) is None, "no process has had its load"
    for target, plan in ((plain, usual), (plain, http_2), (over_2, usual), (over_2, http_2), (plain, usual)):
        running = cast(RunningTarget, SimpleNamespace(name=target.name))
        assert conformance_of(target, plan, TESTBED, LISTENER, running) is not None
        assert conformance_of(target, plan, TESTBED, LISTENER) is not None
    assert asked == ["1.1", "2", "2"], "the server's own version, else the plan's; each once"
