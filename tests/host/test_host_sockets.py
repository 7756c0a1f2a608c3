"""Sockets, ports and descriptor limits, on this host and on made-up files."""

from __future__ import annotations

import resource
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prony.host import diag
from prony.host.resource_limits import descriptor_limits, limits, port_range, time_wait_to
from tests.host.conftest import Grow


def wait_until(holds: Callable[[], bool]) -> bool:
    """The kernel moves a socket on within milliseconds; a busy host may take longer."""
    deadline = time.monotonic() + 10
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def test_sums_are_reckoned_like_ss(tree: Grow) -> None:
    root = tree(
        {
            "proc/net/sockstat": "sockets: used 190\nTCP: inuse 5 orphan 2 tw 7 alloc 20 mem 1\n",
            "proc/net/sockstat6": "TCP6: inuse 3\n",
            "proc/net/snmp": "Ip: a\nIp: 1\nTcp: RtoAlgorithm CurrEstab X\nTcp: 1 4 9\n",
        }
    )
    assert diag.socket_sums(root) == {
        "total": 27,
        "closed": 19,
        "orphaned": 2,
        "time_wait": 7,
        "established": 4,
    }


def test_unreadable_sockets_are_none(tmp_path: Path) -> None:
    assert diag.socket_sums(tmp_path) is None
    assert diag.sockets(tmp_path) == {}


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield listening


def test_states_of_real_sockets_are_counted(server: socket.socket) -> None:
    before = diag.count_by_state()
    assert before is not None
    assert before["listen"] >= 1
    pairs = []
    for _ in range(20):
        client = socket.create_connection(server.getsockname())
        pairs.append((client, server.accept()[0]))
    during = diag.sockets()
    assert during["established"] >= 40
    assert during["total"] >= 41
    for client, accepted in pairs:
        client.close()
        accepted.close()
    port = server.getsockname()[1]
    assert wait_until(lambda: time_wait_to(("127.0.0.1", port)) == 20)
    assert time_wait_to(("localhost", port)) == 20
    assert limits(("127.0.0.1", port)).time_wait_to_target == 20
    assert time_wait_to(("127.0.0.1", 1)) == 0
    assert diag.sockets()["time_wait"] >= 20


def test_ipv6_targets_are_counted() -> None:
    if not socket.has_ipv6:
        pytest.skip("this Python has no IPv6")
    try:
        listening = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError as error:
        pytest.skip(f"this host has no IPv6 loopback: {error}")
    with listening:
        port = listening.getsockname()[1]
        client = socket.create_connection(("::1", port))
        accepted = listening.accept()[0]
        client.close()
        accepted.close()
        assert wait_until(lambda: time_wait_to(("::1", port)) == 1)
        assert time_wait_to(("127.0.0.1", port)) == 0


def test_a_name_that_does_not_resolve_is_unknown_not_zero() -> None:
    assert time_wait_to(("no-such-host.invalid", 80)) is None


def test_a_refused_netlink_socket_is_unknown_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> socket.socket:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket, "socket", refuse)
    assert diag.count_by_state() is None
    assert diag.time_wait_to("127.0.0.1", 80) is None
    assert "established" in diag.sockets()  # the sums are still there


def test_too_many_sockets_are_not_dumped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diag, "DUMP_LIMIT", -1)
    monkeypatch.setattr(diag, "count_by_state", lambda: pytest.fail("dumped"))
    assert "total" in diag.sockets()


def test_counts_agree_with_ss(server: socket.socket) -> None:
    if shutil.which("ss") is None:
        pytest.skip("ss is not installed")
    pairs = [(socket.create_connection(server.getsockname()), server.accept()[0]) for _ in range(5)]
    port = server.getsockname()[1]
    listed = subprocess.run(
        ["ss", "-Htan", "state", "established", f"( sport = :{port} or dport = :{port} )"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert len(listed) == 10
    counted = diag.count_by_state()
    assert counted is not None
    assert counted["established"] >= len(listed)
    for pair in pairs:
        for end in pair:
            end.close()


@pytest.mark.parametrize(
    ("ports", "reserved", "expected"),
    [
        ("32768\t60999\n", "\n", (28_232, 0)),
        ("15000 64000", "8080,15000-15009,64000,65000", (48_990, 11)),
    ],
)
def test_port_range(tree: Grow, ports: str, reserved: str, expected: tuple[int, int]) -> None:
    base = "proc/sys/net/ipv4"
    found = port_range(
        tree({f"{base}/ip_local_port_range": ports, f"{base}/ip_local_reserved_ports": reserved})
    )
    assert found is not None
    assert (found.size, found.reserved) == expected


def test_an_unreadable_port_range_is_unknown(tree: Grow) -> None:
    assert port_range(tree({"proc/sys/net/ipv4/ip_local_port_range": "x"})) is None
    assert limits(root=tree({})).ports is None


def test_limits_of_this_process() -> None:
    found = limits()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert found.descriptors_soft == (soft if soft != resource.RLIM_INFINITY else descriptor_limits()[0])
    assert found.time_wait_to_target is None
    assert found.ports is not None
    assert hard == resource.RLIM_INFINITY or found.descriptors_hard == hard


def test_the_soft_limit_is_raised_and_never_lowered() -> None:
    script = (
        "import resource\n"
        "from prony.host.resource_limits import raise_descriptors, descriptor_limits\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))\n"
        "print(raise_descriptors() == descriptor_limits()[0] == descriptor_limits()[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]
