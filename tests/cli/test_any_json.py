"""The JSON of commands that measure nothing: strict, and as its schema says."""

from __future__ import annotations

import json
import sys

import jsonschema
import pytest

from prony.cli import main
from prony.report.schema import json_schema


@pytest.mark.parametrize(
    ("words", "kind", "keys"),
    [
        (("run", "crud", "--dry-run", "--quick"), "dry-run", {"trials", "skipped", "estimate_s", "changes"}),
        (("doctor",), "doctor", {"checks"}),
        (("servers",), "servers", {"servers", "workloads"}),
    ],
)
def test_what_is_printed_is_what_the_schema_says(
    words: tuple[str, ...],
    kind: str,
    keys: set[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["prony", *words, "--json"])
    assert main.main() == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["schema"], printed["kind"]) == (1, kind)
    assert keys <= set(printed)
    assert all(printed[key] for key in keys - {"skipped"})
    jsonschema.Draft202012Validator(json_schema()[kind]).validate(printed)
