"""The real JMeter, where it is installed: what it does with a plan is what `prony jmeter` has to do."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

REAL = os.environ.get("PRONY_JMETER") or shutil.which("jmeter")
needs_jmeter = pytest.mark.skipif(
    REAL is None, reason="Apache JMeter is not installed (make peers, then PRONY_JMETER=…/bin/jmeter)"
)


def run_jmeter(argv: Sequence[str], folder: Path, cwd: Path | None = None) -> None:
    """JMeter with these arguments; its own log goes into the folder."""
    assert REAL is not None
    subprocess.run(
        [REAL, *argv, "-j", str(folder / "jmeter.log")],
        check=True,
        timeout=240,
        capture_output=True,
        cwd=cwd,
    )
