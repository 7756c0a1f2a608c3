"""The command as a user runs it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import command

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def prony() -> Run:
    """Runs `prony WORDS` in a folder, with a cache and a width of its own. No output may hold a traceback."""

    def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"PRONY_CACHE": str(folder / "cache"), "COLUMNS": "250"}
        done = command.run(words, cwd=folder, env=env)
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done

    return run
