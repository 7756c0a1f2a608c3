"""Which tests run with nothing beside them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import alone

TESTS = Path(__file__).parent


@pytest.mark.parametrize("place", alone.PLACES)
def test_every_place_is_there(place: str) -> None:
    assert (TESTS / place).exists(), "what it named runs beside other tests now"


@pytest.mark.parametrize(
    ("file", "left_out_by"),
    [
        ("host/test_host_proc.py", {"not alone"}),
        ("hosts/test_rig.py", {"not alone"}),
        ("hosts/test_faults.py", {"alone"}),
        ("hosts/test_rigs.py", {"alone"}),
        ("hosts/rig.py", set()),
        ("host", set()),
        ("e2e", set()),
        ("../elsewhere/test_it.py", set()),
    ],
)
def test_a_file_is_left_out_where_none_of_its_tests_is_asked_for(file: str, left_out_by: set[str]) -> None:
    asked = {"", "alone", "not alone", "alone or e2e"}
    place = (TESTS / file).resolve()
    assert {words for words in asked if alone.is_left_out(place, words, TESTS)} == left_out_by


@pytest.mark.parametrize(("asked", "kept"), [("alone", "tests/bench"), ("not alone", "tests/steady")])
def test_what_is_not_wanted_is_not_imported(asked: str, kept: str) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", asked, "tests/bench", "tests/steady"],
        cwd=TESTS.parent, env=plain, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    files = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert {file.rpartition("/")[0] for file in files} == {kept}, done.stdout + done.stderr
    assert "deselected" not in done.stdout
