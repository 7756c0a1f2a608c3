"""A comparison with --hosts, as a user gives it, over ssh and TLS in namespaces. Nothing here is a figure:
the hosts share the CPUs of one machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.lab import NO_FIGURE, SHORT, Lab
from tests.hosts.rig import Rig, needs_rig

pytestmark = needs_rig()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path) as rig:
        yield rig


def test_two_servers_hosts_are_compared_as_pairs_of_server_and_machine(rig: Rig) -> None:
    lab = Lab(rig, servers={"x86": "server", "arm": "load2"}, loads=["load1"])
    run = lab.start("compare", "reference", "--trials", "2", "-c", "2", *SHORT)
    assert run.ended(150) in (0, NO_FIGURE), run.said()[-3000:]
    assert "Traceback" not in run.said()
    records = sorted(lab.records(), key=lambda one: one.id)
    assert [record.failure for record in records] == [None] * 4
    # Interleaved: neither machine is measured twice before the other was once.
    for first, second in (records[:2], records[2:]):
        assert {first.server, second.server} == {"reference on x86", "reference on arm"}
    for record in records:
        machine = record.server.rpartition(" ")[2]
        assert [(host.name, host.role) for host in record.evidence.hosts] == [
            (machine, "server"),
            ("load1", "load"),
        ]
        assert record.evidence.server.name == record.server
    lab.assert_nothing_left()
