"""tests/command.py: a command that does not end says where its threads are."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests import command
from tests.load.test_load_models import server


def test_a_command_that_hangs_is_ended_and_prints_its_stacks(tmp_path: Path) -> None:
    with server("--delay", "fixed:5ms") as url:
        words = ["load", url, "-c", "1", "-d", "500s", "--warmup", "0s", "--db", str(tmp_path / "results.db")]
        stacks = r"[\s\S]*prony/cli/main\.py" if command.forks() else ""
        with command.start(words) as process:
            assert process.stderr is not None
            assert process.stderr.readline()  # it runs
            with pytest.raises(AssertionError, match=r"still running after 0\.2 s" + stacks):
                command.ended(process, 0.2)
        assert process.returncode in (-signal.SIGKILL, -command.STACKS)
