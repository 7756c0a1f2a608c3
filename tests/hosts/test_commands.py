"""Commands with --hosts, each as a user gives it, over ssh and TLS in namespaces. Nothing here is a figure:
the hosts share the CPUs of one machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.lab import Lab
from tests.hosts.rig import Rig, needs_rig

pytestmark = needs_rig()
MEASURED_INVALID = 3
SHORT = ("--quick", "--window", "1s", "--warm-up-cap", "1s")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path) as rig:
        yield rig


def test_two_servers_hosts_are_compared_as_pairs_of_server_and_machine(rig: Rig) -> None:
    lab = Lab(rig, servers={"x86": "server", "arm": "load2"}, loads=["load1"])
    run = lab.start("compare", "reference", "--trials", "2", "-c", "2", *SHORT)
    assert run.ended(150) in (0, MEASURED_INVALID), run.said()[-3000:]
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


def test_a_sweep_from_one_user_on_has_hosts_without_a_part(rig: Rig) -> None:
    lab = Lab(rig)
    run = lab.start("sweep", "reference", "-c", "1,4", "--trials", "1", *SHORT)
    assert run.ended(150) in (0, MEASURED_INVALID), run.said()[-3000:]
    assert "Traceback" not in run.said()
    by_users = {record.evidence.load.users: record for record in lab.records()}
    assert [host.name for host in by_users[1].evidence.hosts] == ["server", "load1"]
    assert [host.name for host in by_users[4].evidence.hosts] == ["server", "load1", "load2"]
    for trial in lab.trials():
        findings = {finding["check"]: finding for finding in trial["findings"]}
        assert findings["hosts"]["status"] != "invalid", findings["hosts"]
        assert findings["counts"]["status"] == "valid", findings["counts"]
    lab.assert_nothing_left()
