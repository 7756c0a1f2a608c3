"""The command as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def prony() -> Run:
    """Runs `prony WORDS` in a folder, with a cache and a width of its own. No output may hold a traceback."""

    def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "prony.cli.main", *words],
            cwd=folder,
            env=os.environ
            | {
                "PRONY_CACHE": str(folder / "cache"),
                "PYTHONPATH": os.pathsep.join(sys.path),
                "COLUMNS": "250",
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done

    return run
