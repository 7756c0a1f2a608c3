"""Servers that stand on a service, in a whole comparison."""

from __future__ import annotations

import json
import os
import sys

import pytest

from prony.store import Store
from tests.e2e.conftest import SHORT, Lab, ended, said_until

KEEPER = """
import pathlib, select, socket, sys
end = pathlib.Path(sys.argv[3])
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as listening:
    while not end.exists():
        if select.select([listening], [], [], 0.1)[0]:
            with listening.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(b"ready")
sys.exit(7)
"""


def stand_on(lab: Lab, server: str, services: str) -> None:
    lab.server(server)
    lab.server("plain")
    file = lab.folder / "servers" / server / "server.yaml"
    file.write_text(f"{file.read_text()}\nservices: [{services}]\n")


@pytest.mark.needs("memcached")
def test_what_a_service_used_is_counted_apart_and_shown(lab: Lab) -> None:
    stand_on(lab, "one", "memcached")
    cells = lab.cells("compare", "one", "plain", *SHORT, "--trials", "1")
    (trial,), (plain,) = (cell["trials"] for cell in cells)
    store = Store.open(str(lab.db))
    stored = {entry.record.server: entry for entry in store.trials(store.experiment("latest").id)}
    records = {name: entry.record for name, entry in stored.items()}
    assert stored["one"].figures["service_rss_mib"] > 0
    assert "service_cpu_share" in stored["one"].figures
    assert "service_cpu_share" not in stored["plain"].figures
    assert records["plain"].evidence.services == ()
    evidence = records["one"].evidence
    (service,) = evidence.services
    assert service.name == "memcached"
    assert service.version is not None
    assert evidence.server_window is not None
    assert evidence.partition is not None
    assert service.wall_s == pytest.approx(evidence.server_window.wall_s, abs=1)
    few = len(os.sched_getaffinity(0)) <= 2
    assert service.shares_server_cpus is few
    assert (service.cpus == evidence.partition.server) is few
    (isolation,) = [f for f in trial["findings"] if f["check"] == "isolation"]
    if few and isolation["code"] == "ok":
        assert "memcached beside the server" in isolation["reason"]
    if trial["counts"]:  # on a host that is too busy it may rightly not conform
        assert trial["figures"]["service_rss_mib"]["value"] > 0
        assert "Backing services" in lab.run("results", "show", "latest", "--details").stdout
    if plain["counts"]:
        assert "service_rss_mib" not in plain["figures"]
    assert evidence.clean_stop is True
    assert lab.leftovers() == []


@pytest.mark.rarely
def test_a_service_that_dies_under_load_ends_the_trial_with_a_sentence(lab: Lab) -> None:
    folder = lab.folder / "servers" / "services"
    folder.mkdir(parents=True)
    (folder / "keeper.py").write_text(KEEPER)
    (folder / "keeper.yaml").write_text(
        f'command: ["{sys.executable}", "{folder}/keeper.py", "{{host}}", "{{port}}", "{folder}/end"]\n'
        'ready: {send: "hello", expect: ready}\npackage: keeper\n'
    )
    stand_on(lab, "one", "keeper")
    process = lab.start("compare", "one", "plain", *SHORT, "--window", "8s", "--trials", "1")
    said_until(process, " one: warm-up")
    (folder / "end").touch()
    _, err = ended(process)
    assert process.returncode == 3, err
    (part,) = lab.json("results", "show", "latest")["parts"]
    (trial,), (plain,) = (cell["trials"] for cell in part["cells"])
    assert not trial["counts"]
    assert "ended under load" not in json.dumps(plain)
    assert "a backing service of the server ended under load: keeper: exit code 7" in json.dumps(trial)
    assert lab.leftovers() == []


def test_a_service_that_is_not_installed(lab: Lab) -> None:
    folder = lab.folder / "servers" / "services"
    folder.mkdir(parents=True)
    (folder / "keeper.yaml").write_text(
        'command: [no-such-keeper]\nready: {send: "hello", expect: ready}\npackage: keeper-of-things\n'
    )
    stand_on(lab, "one", "keeper")
    done = lab.run("compare", "one", "plain", *SHORT, "--trials", "1")
    assert done.returncode == 4
    assert "apt-get install keeper-of-things" in " ".join(done.stderr.split())
