"""The real JMeter, where it is installed: what it does with a plan is what `prony jmeter` has to do."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.programs import program

needs_jmeter = pytest.mark.needs("jmeter")
needs_plug_ins = pytest.mark.needs("jmeter-plugins")
"""JMeter with the thread groups and the shaping timer of jmeter-plugins."""


def run_jmeter(argv: Sequence[str], folder: Path, cwd: Path | None = None, name: str = "jmeter") -> None:
    """JMeter with these arguments, which exits with 0; its own log goes into the folder. `name`: of the
    program.
    """
    assert exits(argv, folder, cwd, name) == 0


def exits(argv: Sequence[str], folder: Path, cwd: Path | None = None, name: str = "jmeter") -> int:
    """Its exit code."""
    command = [program(name), *argv, "-j", str(folder / "jmeter.log")]
    return subprocess.run(command, check=False, timeout=240, capture_output=True, cwd=cwd).returncode
