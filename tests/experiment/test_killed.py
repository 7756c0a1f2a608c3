"""SIGKILL while the engine is calibrated: the trial before it has been measured, and stays."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from prony.store import Store
from tests import command
from tests.exit_codes import demanded_code
from tests.load.test_engine import Reference

LOAD = ("--users", "1", "--duration", "1s", "--warmup", "0s", "--limits", "client_run_delay_max=0.000001")
"""With a limit that every client exceeds: a ceiling decides what that means."""


def calibrates(process: subprocess.Popen[str]) -> bool:
    """Whether it has started a reference server of its own."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    commands = [Path(f"/proc/{child}/cmdline") for child in children]
    return any(b"serve" in file.read_bytes().split(b"\0") for file in commands if file.exists())


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No ceiling of an earlier run."""
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))


def test_a_trial_is_stored_before_the_calibration_that_completes_it(tmp_path: Path) -> None:
    reference, database = Reference(), tmp_path / "results.db"
    words = [str(command.PRONY), "load", reference.url, *LOAD, "--trials", "2", "--db", str(database)]
    try:
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            give_up = time.monotonic() + 90
            while not calibrates(process):
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < give_up
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        store = Store.open(database)
        (experiment,) = store.experiments()
        (trial,) = store.trials(experiment.id)
        assert trial.record.evidence.calibration is None
        assert trial.record.evidence.engine is not None
        store.close()
        done = command.run(["load", "--resume", "latest", "--db", database])
        assert done.returncode == demanded_code(database), done.stderr
        first, second = Store.open(database).trials(experiment.id)
        assert first.record == trial.record, "it is neither run again nor changed"
        assert second.record.block == 1
    finally:
        reference.finish()


def test_a_calibration_completes_the_trial_and_its_judgement(tmp_path: Path) -> None:
    reference, database = Reference(), tmp_path / "results.db"
    try:
        done = command.run(["load", reference.url, *LOAD, "--db", database])
        assert done.returncode == demanded_code(database), done.stderr
    finally:
        reference.finish()
    store = Store.open(database)
    (trial,) = store.trials(store.experiment("latest").id)
    assert trial.record.evidence.calibration is not None
    assert len(trial.judgements) == 1
