"""A result beside one that was exported: read from its file, refused before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.cli.common import Common
from prony.cli.showing import exported, show
from prony.errors import UsageError
from prony.plan.load import ClosedLoad
from prony.plan.part import Part
from prony.plan.plan import Plan
from prony.store import transfer
from tests.experiment.conftest import Bench, cell, plan

PARTS = (Part(name="capacity", title="Capacity"), Part(name="sweep", title="Sweep"))


def asked(parts: tuple[Part, ...] = PARTS) -> Plan:
    cells = [cell(server, 3, ClosedLoad(users=8), part.name) for part in parts for server in "ab"]
    return plan(*cells, parts=parts, command="run")


@pytest.fixture
def file(bench: Bench, tmp_path: Path) -> Path:
    """A whole plan, measured and exported."""
    made = tmp_path / "theirs.prony"
    transfer.write(bench.store, bench.experiment(asked()).run(), made)
    return made


def test_a_result_is_shown_beside_an_exported_one(
    bench: Bench, file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where only one part of the plan was run: parts are known by their names."""
    monkeypatch.setenv("COLUMNS", "120")
    mine = asked(PARTS[:1])
    theirs = exported(file, mine, as_json=False)
    before = len(bench.store.experiments())
    show(bench.store, bench.experiment(mine).run(), Common(), against=theirs)
    said = capsys.readouterr().out
    assert "SAME FINGERPRINT" in said
    rows = [line for line in said.splitlines() if "capacity, hello, closed-8" in line and "÷" not in line]
    assert len(rows) == 2
    assert all(row.count("1,000") >= 2 for row in rows), "both have the figure"
    assert len(bench.store.experiments()) == before + 1, "what the file holds is not kept"


def test_an_export_of_another_plan_is_refused(file: Path) -> None:
    other = plan(cell("c", 1), parts=(Part(name="main", title="t"),), command="run")
    with pytest.raises(UsageError, match=r"theirs\.prony has no cell of the plan 'run'.*capacity/a/hello/"):
        exported(file, other, as_json=False)


def test_what_is_no_export_is_refused(tmp_path: Path, file: Path) -> None:
    with pytest.raises(UsageError, match="no file"):
        exported(tmp_path / "absent", asked(), as_json=False)
    with pytest.raises(UsageError, match="compare-results ID ID --json"):
        exported(file, asked(), as_json=True)
