"""What a trial on several hosts measures: sums, and what is found of links, ways and clocks. Other load on
this machine would be taken for theirs. What is lost in such a trial: test_faults.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.lab import NO_FIGURE, SERVES, SHORT, Lab, one_sentence
from tests.hosts.rig import Rig, needs_rig

pytestmark = needs_rig()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path) as rig:
        yield rig


def test_a_load_from_two_hosts_is_their_sum_and_the_server_is_read_by_its_host(rig: Rig) -> None:
    lab = Lab(rig)
    run = lab.load(window_s=5.0)
    assert run.ended() in (0, NO_FIGURE), run.said()[-3000:]
    one_sentence(run)
    (trial,) = lab.trials()
    assert [host["name"] for host in trial["hosts"]] == ["server", "load1", "load2"]
    (record,) = lab.records()
    assert not record.evidence.server.owned
    assert record.evidence.server.pid in rig.processes("server", SERVES)
    assert record.evidence.server_window is not None
    assert record.evidence.server_window.cpu_s
    findings = {f["check"]: f for f in trial["findings"]}
    assert findings["hosts"]["conforms"], findings["hosts"]
    assert findings["errors"]["code"] == "ok"
    rates = [host["requests_per_s"] for host in trial["hosts"] if host["role"] == "load"]
    if trial["conforms"]:
        assert sum(rates) == pytest.approx(trial["figures"]["requests_per_s"]["value"], rel=0.01)
    lab.assert_nothing_left(besides=SERVES)


def test_a_sweep_from_one_user_on_has_hosts_without_a_part(rig: Rig) -> None:
    lab = Lab(rig)
    run = lab.start("sweep", "reference", "-c", "1,4", "--trials", "1", *SHORT)
    assert run.ended(150) in (0, NO_FIGURE), run.said()[-3000:]
    assert "Traceback" not in run.said()
    by_users = {record.evidence.load.users: record for record in lab.records()}
    assert [host.name for host in by_users[1].evidence.hosts] == ["server", "load1"]
    assert [host.name for host in by_users[4].evidence.hosts] == ["server", "load1", "load2"]
    for trial in lab.trials():
        findings = {finding["check"]: finding for finding in trial["findings"]}
        assert findings["hosts"]["conforms"], findings["hosts"]
        assert findings["counts"]["code"] == "ok", findings["counts"]
    lab.assert_nothing_left()


def test_a_link_of_100_mbit_is_named_as_the_bound(rig: Rig) -> None:
    lab = Lab(rig, servers={}, link="100 Mbit/s")
    for name in ("load1", "load2"):
        rig.rate(name, 100e6)
    url = lab.serve("--body-bytes", "20000")
    run = lab.start("load", url, "-c", "16", "--warmup", "3s", "--duration", "5s")
    assert run.ended() in (0, NO_FIGURE), run.said()[-3000:]
    (trial,) = lab.trials()
    network = next(f for f in trial["findings"] if f["check"] == "network")
    assert network["code"] == "network", network
    assert network["conforms"]
    assert trial["bound_by"] == "network"
    lab.assert_nothing_left(besides=SERVES)


def test_a_way_that_loses_packets_is_named(rig: Rig) -> None:
    rig.way("load2", loss=0.03)
    lab = Lab(rig, servers={}, loads=["load2"])
    run = lab.load(window_s=5.0)
    assert run.ended() in (0, NO_FIGURE), run.said()[-3000:]
    (trial,) = lab.trials()
    network = next(f for f in trial["findings"] if f["check"] == "network")
    assert network["code"] == "retransmitted", network
    assert network["bias"], network
    lab.assert_nothing_left(besides=SERVES)


def test_a_clock_that_is_3_s_off(rig: Rig) -> None:
    """The host counts from its own start: only the offset differs, which is found, and rows fall together."""
    lab = Lab(rig, servers={}, by_hand=["load2"])
    lab.worker("load2", clock_ahead_s=3)
    run = lab.load(window_s=5.0)
    assert run.ended() in (0, NO_FIGURE), run.said()[-3000:]
    (trial,) = lab.trials()
    found = next(f for f in trial["findings"] if f["check"] == "hosts")
    assert found["conforms"], found
    for told in ("skew_ms", "opened_late_ms"):  # an offset that was not taken out would be in both
        assert all(host[told] < 3000 for host in trial["hosts"])
