"""What holds for every front end, found as `prony` finds it. A new one needs no line here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prony import seams
from prony.errors import UsageError
from prony_frontends import front_end, front_ends, names
from tests import command

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "frontends.md").read_text(encoding="utf-8")


def test_an_unknown_one_is_refused_with_the_known() -> None:
    with pytest.raises(UsageError, match=f"unknown tool 'locust'; expected {', '.join(names())}"):
        front_end("locust")


def test_no_two_take_the_same_scripts() -> None:
    endings = [ending for tool in front_ends() for ending in tool.script_endings]
    assert len(set(endings)) == len(endings) > 0


@pytest.mark.parametrize("name", names())
def test_it_has_its_name_its_usage_and_its_section(name: str) -> None:
    tool = front_end(name)
    assert tool.name == name
    assert f"prony {name}" in tool.usage
    assert re.search(rf"^## {name}$", PAGE, re.MULTILINE | re.IGNORECASE), "docs/frontends.md"


def test_the_help_lists_them_all() -> None:
    shown = " ".join(command.run(["--help"]).stdout.split())
    for name in names():
        assert seams.installed(seams.FRONT_ENDS, name), f"no entry point {name} is installed: make setup"
        assert len(seams.summary(seams.FRONT_ENDS, name)) > len("…'s.")
        assert f"{name} {seams.summary(seams.FRONT_ENDS, name)}" in shown
