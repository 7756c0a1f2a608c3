"""The published schemas are those of the programs: `make schema` writes them, and nobody may forget it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from prony.load.engine import find_engine
from prony.report.schema import json_schema

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"


def published(name: str) -> object:
    file = SCHEMAS / name
    if not file.is_file():
        pytest.fail(f"{file} is missing; write it with: make schema")
    return json.loads(file.read_text())


def test_the_engines_contract_has_not_drifted() -> None:
    done = subprocess.run([find_engine(), "schema"], capture_output=True, text=True, check=True, timeout=30)
    assert json.loads(done.stdout) == published("engine.json"), "the contract changed: make schema"


def test_the_printed_json_has_not_drifted() -> None:
    assert json_schema() == published("results.json"), "the printed JSON changed: make schema"
