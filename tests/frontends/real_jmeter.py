"""The real JMeter, where it is installed: what it does with a plan is what `prony jmeter` has to do."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from prony_frontends import jmeter
from tests.frontends.conftest import offered, quick_desk
from tests.programs import program

needs_jmeter = pytest.mark.needs("jmeter")
needs_plug_ins = pytest.mark.needs("jmeter-plugins")
"""JMeter with the thread groups and the shaping timer of jmeter-plugins."""


def run_jmeter(argv: Sequence[str], folder: Path, cwd: Path | None = None, name: str = "jmeter") -> None:
    """JMeter with these arguments, which exits with 0; its own log goes into the folder. `name`: of the
    program.
    """
    assert exits(argv, folder, cwd, name) == 0


BOTH = pytest.mark.parametrize("who", ["ours", pytest.param("theirs", marks=needs_jmeter)])


def offered_by(who: str, plan: Path) -> None:
    """The plan by JMeter ("theirs"), or its load alone by the engine, without an error."""
    argv = ["-n", "-t", str(plan)]
    if who == "theirs":
        run_jmeter(argv, plan.parent)
    else:
        assert not offered(jmeter.translate(argv)).totals.errors


def run_by(who: str, argv: Sequence[str], folder: Path) -> None:
    """JMeter ("theirs") or Prony, which exits with 0."""
    if who == "theirs":
        run_jmeter(argv, folder, cwd=folder)
    else:
        assert jmeter.run(argv, quick_desk()[0]) == 0


def exits(argv: Sequence[str], folder: Path, cwd: Path | None = None, name: str = "jmeter") -> int:
    """Its exit code."""
    command = [program(name), *argv, "-j", str(folder / "jmeter.log")]
    return subprocess.run(command, check=False, timeout=240, capture_output=True, cwd=cwd).returncode
