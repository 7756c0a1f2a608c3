"""`--hosts` from the command to the stored trial: hosts are workers on loopback, each a process of its own
with TLS. Nothing here is a figure: they share the CPUs of one machine.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from prony.store import Store, StoredTrial
from tests.hosts.loopback import Loopback
from tests.load.test_engine import Reference

pytest.importorskip("distributed", reason="several hosts need the extra prony[hosts]")

SHORT = ["--quick", "--trials", "1", "--window", "1s", "--warm-up-cap", "1s", "--users", "3"]


def prony(hosts: Loopback, *words: str) -> subprocess.Popen[str]:
    store = str(hosts.folder / "results.db")
    return subprocess.Popen(
        [sys.executable, "-m", "prony", *words, "--hosts", str(hosts.path), "--db", store],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def stored(hosts: Loopback) -> list[StoredTrial]:
    store = Store.open(str(hosts.folder / "results.db"))
    return [trial for one in store.experiments() for trial in store.trials(one.id)]


def said_until(process: subprocess.Popen[str], word: str) -> str:
    """What it said up to the line with this word."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if word in line:
            return said
    raise AssertionError(said)


def test_a_server_is_compared_on_two_machines_and_every_request_is_counted(tmp_path: Path) -> None:
    with Loopback(tmp_path, workers=2, servers=("x86", "arm")) as hosts:
        process = prony(hosts, "compare", "reference:https", *SHORT)
        said, _ = process.communicate(timeout=150)
        assert process.returncode in (0, 3), said  # what shares one machine is seldom valid
        trials = stored(hosts)
    servers = {trial.record.server for trial in trials}
    assert servers == {"reference:https on x86", "reference:https on arm"}, said
    for trial in trials:
        evidence = trial.record.evidence
        assert trial.record.failure is None
        assert [(host.name, host.role) for host in evidence.hosts] == [
            (trial.record.server.rpartition(" ")[2], "server"),
            ("load-1", "load"),
            ("load-2", "load"),
        ]
        assert evidence.engine is not None
        assert evidence.server_count is not None
        assert evidence.engine.totals.sent == evidence.server_count.requests
        own = [host.engine.totals.sent for host in evidence.hosts if host.engine is not None]
        assert len(own) == 2
        assert sum(own) == evidence.engine.totals.sent
        assert evidence.load.users == 3
        assert evidence.start_up is not None
        assert evidence.conformance is not None
        assert not evidence.conformance.failed
        assert evidence.clean_stop
        assert all(host.clock is not None and host.lost is None for host in evidence.hosts)


@pytest.mark.rarely
def test_a_trial_whose_load_host_is_killed_does_not_conform_and_nothing_hangs(
    tmp_path: Path,
) -> None:
    with Loopback(tmp_path, workers=2, servers=("server",)) as hosts:
        process = prony(hosts, "compare", "reference", "reference:https", *SHORT[:3], "--window", "30s")
        said = said_until(process, ": warm-up")
        hosts.workers["load-2"].kill()
        rest, _ = process.communicate(timeout=60)
        assert process.returncode == 4, said + rest
        assert "load-2" in rest.splitlines()[-1]
        (trial,) = stored(hosts)
    assert not trial.judgement.conforms
    assert trial.judgement.not_conforming[0].check == "hosts"
    assert trial.record.failure is not None
    assert trial.record.failure.startswith("load-2")
    lost = {host.name: host.lost for host in trial.record.evidence.hosts}
    assert lost["load-1"] is None
    assert lost["load-2"] is not None


@pytest.mark.rarely
def test_a_server_at_a_url_is_read_by_its_host(tmp_path: Path) -> None:
    """Somebody started it there; its CPU, its port and its neighbours are no longer unknown."""
    server = Reference()
    try:
        with Loopback(tmp_path, workers=1, servers=("server",)) as hosts:
            process = prony(hosts, "load", server.url, "-c", "3", "-d", "2s", "--warmup", "1s")
            said, _ = process.communicate(timeout=120)
            assert process.returncode in (0, 3), said  # what shares one machine is seldom valid
            (trial,) = stored(hosts)
        evidence = trial.record.evidence
        assert trial.record.failure is None
        assert [(host.name, host.role) for host in evidence.hosts] == [
            ("server", "server"),
            ("load-1", "load"),
        ]
        assert (evidence.server.pid, evidence.server.owned) == (server.process.pid, False)
        window = evidence.server_window
        assert window is not None
        assert window.cpu_s
        assert evidence.partition is not None
        assert evidence.partition.server
        assert server.process.poll() is None, "it is not ours to end"
    finally:
        server.finish()


@pytest.mark.rarely
def test_hosts_stop_what_they_run_when_the_laboratory_is_killed(tmp_path: Path) -> None:
    with Loopback(tmp_path, workers=1, servers=("server",)) as hosts:
        hosts.start_scheduler()
        process = prony(hosts, "compare", "reference", "reference:https", *SHORT[:3], "--window", "30s")
        said_until(process, ": warm-up")
        assert children(hosts)
        process.kill()
        process.communicate()
        ends_s = time.monotonic() + 30
        while children(hosts) and time.monotonic() < ends_s:
            time.sleep(0.2)
        assert children(hosts) == []
        assert all(worker.poll() is None for worker in hosts.workers.values())


def children(hosts: Loopback) -> list[str]:
    """What the workers have started and still runs."""
    found = []
    for worker in hosts.workers.values():
        for task in Path(f"/proc/{worker.pid}/task").glob("*/children"):
            for pid in task.read_text().split():
                found.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
    return found


def test_without_hosts_nothing_of_dask_is_imported() -> None:
    code = (
        "import sys; import prony.cli.main, prony.cli.measure, prony.experiment.experiment, prony.trial.run; "
        "print([name for name in ('distributed', 'dask', 'asyncssh', 'prony_hosts') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["load", "http://127.0.0.1:1/", "--log", "rows.csv"], "--log"),
        (["load", "http://127.0.0.1:1/", "--client-cpus", "0"], "--client-cpus"),
    ],
)
@pytest.mark.rarely
def test_what_cannot_be_done_on_several_hosts_is_refused_in_a_sentence(
    tmp_path: Path, words: list[str], sentence: str
) -> None:
    with Loopback(tmp_path, workers=1) as hosts:
        process = prony(hosts, *words)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 2, said
    assert sentence in said.splitlines()[-1]
    assert "Traceback" not in said
