"""The command on outputs that know little: no arrows, no width."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def prony(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "prony", *words],
        env=os.environ | environment,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_without_the_letters_gets_question_marks(encoding: str) -> None:
    done = prony("servers", "--help", PYTHONIOENCODING=encoding)
    assert done.returncode == 0
    plan = prony("run", "nö→such", PYTHONIOENCODING=encoding)
    assert plan.returncode == 2
    assert b"unknown plan" in plan.stderr
    assert b"defect" not in plan.stderr


def test_a_width_of_nothing_is_no_width() -> None:
    assert prony("servers", COLUMNS="0").stdout == prony("servers", COLUMNS="80").stdout


def test_a_closed_output_ends_no_command() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -m prony servers --help >&-', sys.executable],
        capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
