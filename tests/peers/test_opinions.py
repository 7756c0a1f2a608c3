"""A cross-check: which check explains why another load generator disagrees with Prony."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prony import seams
from prony.plan.part import CrossCheck, Part
from prony.report.blocks import Lines, Table
from prony.report.export import to_json
from prony.report.result import ResultView
from prony.report.shapes import shape_named, shape_of
from prony_peers.opinions import PRONY, Run, opinions
from tests.report import factory


def run(tool: str, requests: int, **changes: object) -> Run:
    values: dict[str, object] = {
        "tool": tool, "round": 1, "requests": requests, "errors": 0, "seconds": 1.0, "client_cpu_s": 0.3,
        "wall_s": 1.0, "counted": requests,
    }  # fmt: skip
    return Run(**(values | changes))  # type: ignore[arg-type]


def judged(*runs: Run) -> tuple[bool | None, str | None, str]:
    found = opinions([run(PRONY, 10_000), *runs], {"wrk": "4"}, 2)[1]
    return found.agrees, found.check, found.why


def test_what_agrees_needs_no_explanation() -> None:
    assert judged(run("wrk", 9_800), run("wrk", 10_200)) == (True, None, "")


@pytest.mark.parametrize(
    ("found", "check", "words"),
    [
        (run("wrk", 5_000, client_cpu_s=0.97), "client", "97%"),
        (run("wrk", 5_000, errors=900), "errors", "900 "),
        (run("wrk", 5_000, counted=9_000), "counts", "9000 "),
        (run("wrk", 0, failure="it ended with exit code 1: no"), "errors", "exit code 1"),
        (run("wrk", 5_000), "client", "10,000/s"),
        (run("wrk", 15_000), None, "15000/s"),
    ],
)
def test_a_difference_is_explained_by_a_check(found: Run, check: str | None, words: str) -> None:
    _, named, why = judged(found)
    assert named == check
    assert words in why


def test_pronys_own_finding_explains_too() -> None:
    own = run(PRONY, 10_000, conforms=False, finding=("client", "its CPU was full"), identifier="x")
    found = opinions([own, run("ab", 15_000)], {"ab": "2.3"}, 2)
    assert (found[1].check, found[1].why) == ("client", "in Prony's own run: its CPU was full")


def checked() -> ResultView:
    view = factory.experiment(servers=("tomcat",))
    (part,) = view.parts
    asked = CrossCheck(versions={"wrk": "4"}, left_out={"oha": "it is not installed"})
    return replace(view, parts=(replace(part, part=replace_part(part.part, asked)),))


def replace_part(part: Part, asked: CrossCheck) -> Part:
    return part.model_copy(update={"shape": "cross-check", "cross_check": asked})


def test_its_table_and_json_are_its_package_s() -> None:
    (part,) = checked().parts
    made = to_json(checked()).parts[0].cross_check
    assert made is not None
    assert [one["tool"] for one in made["opinions"]] == [PRONY, "wrk"]
    assert made["left_out"] == {"oha": "it is not installed"}
    assert [type(block) for block in shape_of(part).blocks(part)] == [Table, Lines]


def test_without_the_package_prony_s_own_figures_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seams, "found", lambda *_: None)
    shape_named.cache_clear()
    try:
        (part,) = checked().parts
        assert to_json(checked()).parts[0].cross_check is None
        table, lines = shape_of(part).blocks(part)
        assert isinstance(table, Table)
        assert len(table.sections[0].rows) == 1
        assert "prony-peers" in str(lines)
        assert shape_of(part).chapters(part)
    finally:
        shape_named.cache_clear()
