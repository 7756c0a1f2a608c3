"""`prony hosts` over namespaces and real ssh: up, check, down, and hosts that cannot be reached."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.rig import Rig, needs_rig

pytestmark = needs_rig()
PRONY = Path(sys.executable).parent / "prony"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    pytest.importorskip("distributed", reason="the extra hosts is not installed")
    with Rig(tmp_path, ("lab", "load1", "load2")) as rig:
        for host in ("load1", "load2"):
            rig.sshd(host)
        made = rig.run("lab", [str(PRONY), "hosts", "certificates", str(tmp_path / "certs")])
        assert made.returncode == 0, made.stderr
        yield rig


def hosts_file(rig: Rig, **other: str) -> str:
    """hosts.yaml of a server's host and a load host over ssh."""
    keys = {"prony": str(PRONY), **other}
    text = {
        "lab": {"scheduler": f"tls://{rig.address('lab')}:8786", "certificates": "certs"},
        "server": {"ssh": "load2", "prony": str(PRONY)},
        "load": [{"ssh": "load1", **keys}],
    }
    path = rig.folder / "hosts.yaml"
    path.write_text(json.dumps(text), encoding="utf-8")
    return str(path)


def test_up_check_and_down_leave_nothing(rig: Rig) -> None:
    file = hosts_file(rig)
    up = rig.run("lab", [str(PRONY), "hosts", "up", file], timeout_s=100)
    assert up.returncode == 0, up.stderr
    assert f"tls://{rig.address('load1')}:" in up.stdout
    looked = rig.run("lab", [str(PRONY), "hosts", "check", file, "--json"], timeout_s=100)
    assert looked.returncode == 0, looked.stdout + looked.stderr
    hosts = {host["name"]: host["checks"] for host in json.loads(looked.stdout)["hosts"]}
    assert list(hosts) == ["laboratory", "load2", "load1"]
    found = {check["name"]: check for check in hosts["load1"]}
    assert found["version"]["status"] == found["worker"]["status"] == found["clock"]["status"] == "ok"
    assert found["link to load2"]["status"] == "unknown"  # a veth pair has no speed
    assert found["link to load2"]["found"].startswith("eth0, ")
    assert "doctor" in found
    down = rig.run("lab", [str(PRONY), "hosts", "down", file], timeout_s=60)
    assert "load1" in down.stdout
    gone(rig)


def gone(rig: Rig) -> None:
    """No process of Prony's is left on any host; one that was told to end may take a moment."""
    from tests.hosts.test_laboratory import until

    until(lambda: not any("prony" in line for host in rig.hosts for line in rig.left(host)))


def test_a_command_starts_its_workers_and_ends_them(rig: Rig) -> None:
    looked = rig.run("lab", [str(PRONY), "hosts", "check", hosts_file(rig)], timeout_s=100)
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert "load2, load1" in looked.stderr
    gone(rig)


def test_a_laboratory_that_is_killed_leaves_nothing(rig: Rig) -> None:
    from tests.hosts.test_laboratory import until

    rig.start("lab", [str(PRONY), "hosts", "check", hosts_file(rig)])
    until(lambda: rig.processes("load1", "hosts worker") and rig.processes("load2", "hosts worker"))
    assert rig.kill("lab", "hosts check")
    gone(rig)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"ssh": f"root@127.0.0.2:{9}", "name": "x"}, "root@127.0.0.2:9"),
        ({"prony": "/nowhere/prony"}, "exit code 127"),
        ({"ssh": "nobody@load1", "name": "x"}, "nobody@load1"),
    ],
)
def test_why_a_host_cannot_be_reached(rig: Rig, keys: dict[str, str], said: str) -> None:
    refused = rig.run("lab", [str(PRONY), "hosts", "up", hosts_file(rig, **keys)], timeout_s=100)
    assert refused.returncode == 4
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr
    gone(rig)


def test_a_host_key_that_changed_is_refused(rig: Rig) -> None:
    known = rig.home / ".ssh" / "known_hosts"
    known.write_text(known.read_text().replace(f"[{rig.address('load1')}]", "[192.0.2.1]"))
    refused = rig.run("lab", [str(PRONY), "hosts", "up", hosts_file(rig)], timeout_s=100)
    assert refused.returncode == 4
    assert "load1: the host key" in refused.stderr
    gone(rig)
