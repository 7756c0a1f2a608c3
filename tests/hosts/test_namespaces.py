"""Several hosts with real parts: namespaces, ssh, TLS, Dask workers, engines and a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.lab import PRONY, Lab
from tests.hosts.rig import Rig, needs_rig

pytestmark = needs_rig()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path) as rig:
        yield rig


def test_check_sees_every_host_over_ssh_and_tls(rig: Rig) -> None:
    lab = Lab(rig)
    rig.way("load2", delay_ms=10)
    said = rig.run("lab", [PRONY, "hosts", "check", str(lab.file), "--json"], timeout_s=60)
    assert said.returncode == 0, said.stdout + said.stderr
    hosts = {host["name"]: host["checks"] for host in json.loads(said.stdout)["hosts"]}
    assert {"server", "load1", "load2"} <= set(hosts)
    found = {name: {check["name"]: check for check in checks} for name, checks in hosts.items()}
    for name in ("server", "load1", "load2"):
        assert found[name]["worker"]["found"].startswith(f"tls://{rig.address(name)}:")
        assert found[name]["version"]["status"] == "ok"
        assert found[name]["clock"]["status"] != "bad"
    near, far = (found[name]["link to server"]["found"] for name in ("load1", "load2"))
    for text in (near, far):
        assert text.startswith("eth0, 1 Gbit/s (declared), round trip ")
    assert float(far.split()[-2]) >= 20 > float(near.split()[-2])
    lab.assert_nothing_left()
