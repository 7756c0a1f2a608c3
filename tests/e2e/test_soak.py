"""A soak that is ended keeps what it had measured, and goes on when it is resumed."""

from __future__ import annotations

import signal
import time

import pytest

from tests.e2e.conftest import Lab, ended, said_until

PLAN = """
title: A soak
servers: one
workloads: hello
parts:
  - {name: short, loads: {users: 2}, measured: {duration_s: 1}, trials: 1}
  - {name: soak, soak: true, loads: {users: 2}, measured: {duration_s: 28800}, trials: 1}
"""
LONG_S = 24
WORTH_KEEPING_S = LONG_S / 2


@pytest.mark.rarely
def test_what_was_measured_before_its_end_is_kept(lab: Lab) -> None:
    """By SIGTERM, as a service manager or `timeout` does it; Ctrl-C is the same exception."""
    lab.server("one")
    (lab.folder / "long.yaml").write_text(PLAN)
    process = lab.start("run", "long.yaml", "--duration", f"{LONG_S}s")
    said_until(process, ": window")
    time.sleep(WORTH_KEEPING_S + 3)
    process.send_signal(signal.SIGTERM)
    out, err = ended(process)
    assert process.returncode == 130, out + err
    assert "Traceback" not in out + err

    shown = lab.json("results", "show", "latest")
    assert shown["status"] == "interrupted"
    (part,) = shown["parts"]
    (cell,) = part["cells"]
    assert (cell["planned_trials"], cell["ended_trials"]) == (1, 1)
    assert any("interrupted after" in warning for warning in shown["warnings"])
    if cell["counting_trials"]:  # a busy host may rightly make it invalid
        assert cell["figures"]["completed"]["median"] > 0

    left = lab.json("run", "--resume", "latest", "--dry-run")
    assert [trial["cell"] for trial in left["trials"]] == [cell["id"]], "it is run again, whole"
