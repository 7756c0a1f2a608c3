"""The forecast of ports knows where the connections go: a command that measures asks, and does not guess."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prony.cli import bench as cli_bench
from prony.experiment import running
from prony.host import resource_limits as host_limits
from prony.host.resource_limits import limits
from prony.plan.load import ClosedLoad, SteadyWindow
from prony.plan.workload import Workload


def reused(target: tuple[str, int], *_: object) -> bool:
    return target[0] == "127.0.0.1"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that reuses ports on loopback alone, whatever the one below this test does."""
    monkeypatch.setattr(host_limits, "time_wait_reuse", reused)
    monkeypatch.setattr(host_limits, "time_wait_to", lambda _: 7)


@pytest.mark.usefixtures("machine")
def test_servers_of_ours_are_on_loopback() -> None:
    assert cli_bench.prepare(None, None).limits.time_wait_reuse is True


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("url", "addresses", "reuse"),
    [
        ("http://127.0.0.1:8080/", (), True),
        ("http://192.0.2.1:8080/", (), False),
        ("http://192.0.2.1:8080/", ("127.0.0.1:8081",), True),
    ],
)
def test_a_running_server_is_where_its_url_says(url: str, addresses: tuple[str, ...], reuse: bool) -> None:
    prepared = cli_bench.prepare(None, None)
    bench = replace(prepared, limits=limits())
    load = running.RunningLoad(
        target=running.Target.parse(url),
        load=ClosedLoad(users=1),
        measured=SteadyWindow(window_s=1),
        warm_up_s=0,
        driver="auto",
        workload=Workload.model_validate({"name": "w", "steps": [{"path": "/"}]}),
        seed=1,
        addresses=addresses,
    )
    found = running.limits_of(load, bench)
    assert (found.time_wait_reuse, found.time_wait_to_target) == (reuse, 7)
    assert bench.limits.time_wait_reuse is None
