"""The forecast of ports knows where the connections go: a command that measures asks, and does not guess."""

from __future__ import annotations

import pytest

from prony.experiment import testbed
from prony.host import resource_limits as host_limits
from prony.host.resource_limits import limits
from prony.plan.target import parse_url
from prony.targets import ExternalServer


def reused(target: tuple[str, int], *_: object) -> bool:
    return target[0] == "127.0.0.1"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that reuses ports on loopback alone, whatever the one below this test does."""
    monkeypatch.setattr(host_limits, "time_wait_reuse", reused)
    monkeypatch.setattr(host_limits, "time_wait_to", lambda _: 7)


@pytest.mark.usefixtures("host")
def test_servers_of_ours_are_on_loopback() -> None:
    assert testbed.prepare(None, None).limits.time_wait_reuse is True


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("url", "addresses", "reuse"),
    [
        ("http://127.0.0.1:8080/", (), True),
        ("http://192.0.2.1:8080/", (), False),
        ("http://192.0.2.1:8080/", ("127.0.0.1:8081",), True),
    ],
)
def test_a_running_server_is_where_its_url_says(url: str, addresses: tuple[str, ...], reuse: bool) -> None:
    target = parse_url(url).target.model_copy(update={"addresses": addresses})
    found = ExternalServer(target).limits(limits())
    assert (found.time_wait_reuse, found.time_wait_to_target) == (reuse, 7)
    assert limits().time_wait_reuse is None
