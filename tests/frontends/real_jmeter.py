"""The real JMeter, where it is installed: what it does with a plan is what `prony jmeter` has to do."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.programs import program

needs_jmeter = pytest.mark.needs("jmeter")


def run_jmeter(argv: Sequence[str], folder: Path, cwd: Path | None = None) -> None:
    """JMeter with these arguments; its own log goes into the folder."""
    subprocess.run(
        [program("jmeter"), *argv, "-j", str(folder / "jmeter.log")],
        check=True,
        timeout=240,
        capture_output=True,
        cwd=cwd,
    )
