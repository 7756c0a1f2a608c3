"""What a command imports: what answers at once must not load what measures, judges or draws."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.load.test_engine import Reference

SCRIPT = """
import json, sys
from prony.cli.main import main
code = main()
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""
NUMBERS = ("numpy", "scipy", "hdrh")
DRAWS = ("prony.report.html", "prony.report.terminal")
JUDGES = ("prony.judge.checks", "prony.compare", "prony.trial", "prony.steady")


def imported(*words: str) -> tuple[int, list[str]]:
    """The exit code of `prony WORDS` in a new Python, and the names of what it had imported at its end."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    code, names = json.loads(done.stderr.splitlines()[-1])
    return code, names


def below(names: list[str], forbidden: tuple[str, ...]) -> list[str]:
    """Those of the names that are forbidden, or lie in a forbidden package."""
    return [name for name in names if any(f"{name}.".startswith(f"{one}.") for one in forbidden)]


@pytest.mark.parametrize(
    ("words", "forbidden"),
    [
        (("--help",), ("sqlalchemy", "rich", "yaml", "prony.cli.load", "prony.cli.gate")),
        (("load", "--help"), ("sqlalchemy", "yaml", "prony.cli.compare", "prony.cli.gate")),
    ],
    ids=" ".join,
)
def test_what_measures_nothing_imports_nothing_that_does(
    words: tuple[str, ...], forbidden: tuple[str, ...], tmp_path: Path
) -> None:
    database = () if "--help" in words else ("--db", str(tmp_path / "r.db"))
    code, names = imported(*words, *database)
    assert code == 0
    assert below(names, (*NUMBERS, *DRAWS, *JUDGES, *forbidden)) == []


def test_a_load_imports_no_statistics_before_it_is_over(tmp_path: Path) -> None:
    """Nothing listens there, so the command ends where its load would begin."""
    code, names = imported("load", "http://127.0.0.1:9/", "--db", str(tmp_path / "r.db"))
    assert code == 4
    assert below(names, ("prony.compare", "prony_conformance.suite", "h11", "scipy", *DRAWS)) == []


def test_change_points_import_no_scipy_and_a_command_collects_no_garbage() -> None:
    script = (
        "import gc, sys, numpy, prony.cli\n"
        "from prony.steady.changes import find_changes\n"
        "found = find_changes(numpy.repeat([1.0, 2.0], 10), penalty=42.0, least=0.02)\n"
        "print(found.cuts, 'scipy' in sys.modules, gc.get_threshold()[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "(10,) False 200000\n"


def test_a_load_of_one_server_imports_no_scipy(tmp_path: Path) -> None:
    reference = Reference()
    try:
        words = ("load", reference.url, "-d", "1s", "--warmup", "0s", "--db", str(tmp_path / "r.db"))
        code, names = imported(*words)
    finally:
        reference.finish()
    assert code == 0
    assert below(names, ("scipy", "prony.report.html", "prony.report.schema")) == []
