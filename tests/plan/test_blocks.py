"""Blocks of a workload: read, refused with a sentence, counted, and put into the engine's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prony.errors import UsageError
from prony.load.contract import EngineLoad, engine_plan
from prony.load.facts import load_facts
from prony.plan.load import ClosedLoad, Connections
from prony.plan.workload import Workload, read

FILE = """
variables: {page: "1"}
steps:
  - {name: list, path: "/people?page=${page}", capture: {id: {json: /id}}}
  - {once: true, steps: [{name: login, path: /login}]}
  - if: {all: [{left: "${id}", op: "!=", right: ""}, {not: {exists: other}}]}
    steps: [{set: {page: "2"}}, {transaction: closer, steps: [{path: "/a", repeat: 2}]}]
    else: [{pause: {kind: uniform, min_ms: 1, max_ms: 3}}]
  - {loop: {over: [x, y], as: part, index: n}, steps: [{path: "/${part}"}, {pace: {per_min: 60}}]}
  - {choice: random, weights: [9, 1], steps: [{path: /b}, {group: true, steps: [{path: /c}, {path: /d}]}]}
  - share: {percent: 30, per: run}
    steps: [{path: /e, think_before: {kind: poisson, mean_ms: 5, offset_ms: 1}}]
"""


def written(tmp_path: Path, text: str) -> Workload:
    file = tmp_path / "w.yaml"
    file.write_text(text, encoding="utf-8")
    return read(file)


def scenario_of(workload: Workload) -> dict[str, Any]:
    load = EngineLoad(url="http://h:1", workload=workload, load=ClosedLoad(users=1), cpus=(0,), after_s=1)
    scenario: dict[str, Any] = engine_plan(load)["scenarios"][0]
    return scenario


def test_blocks_become_the_engines(tmp_path: Path) -> None:
    scenario = scenario_of(written(tmp_path, FILE))
    assert scenario["variables"] == [["page", "1"]]
    _, once, decides, loop, choice, share = scenario["steps"]
    assert once["once"] is True
    assert once["steps"][0]["name"] == "login"
    assert decides["if"]["all"][1] == {"not": {"exists": "other"}}
    assert decides["steps"][0] == {"set": [["page", "2"]]}
    assert decides["else"] == [{"pause": {"kind": "uniform", "min_ms": 1.0, "max_ms": 3.0}}]
    assert loop["loop"] == {"over": ["x", "y"], "as": "part", "index": "n"}
    assert loop["steps"][1] == {"pace": {"per_min": 60.0, "per": "user"}}
    assert choice["weights"] == [9.0, 1.0]
    assert share["steps"][0]["think_before"]["kind"] == "poisson"


def test_a_page_lists_what_it_embeds_and_a_pace_follows_a_rate(tmp_path: Path) -> None:
    text = """
steps:
  - {pace: {per: run, phases: [{duration_s: 2, from_per_s: 1, to_per_s: 5}]}}
  - {path: /, resources: {into: embedded, not_matching: "[.]mp4$"}}
  - {loop: {each: embedded, as: it}, steps: [{path: "/${it}"}]}
"""
    pace, page, _ = scenario_of(written(tmp_path, text))["steps"]
    phase = {"duration_ms": 2000.0, "from_per_s": 1.0, "to_per_s": 5.0}
    assert pace == {"pace": {"per": "run", "phases": [phase]}}
    assert page["resources"] == {"into": "embedded", "not_matching": "[.]mp4$"}
    with pytest.raises(UsageError, match="per_min and phases"):
        written(tmp_path, "steps: [{pace: {per: run}}, {path: /}]")


def test_branches_are_walked_side_by_side(tmp_path: Path) -> None:
    text = """
steps:
  - {path: /, resources: {into: embedded}}
  - {parallel: {at_once: 6, each: embedded, as: it}, steps: [{path: "/${it}"}]}
  - {if: true, steps: [{parallel: {at_once: 8}, steps: [{path: /a}, {path: /b}]}]}
"""
    workload = written(tmp_path, text)
    _, each, inside = scenario_of(workload)["steps"]
    assert each["parallel"] == {"at_once": 6, "each": "embedded", "as": "it"}
    assert inside["steps"][0]["parallel"] == {"at_once": 8}
    assert workload.requests_at_once == 6
    facts = load_facts(ClosedLoad(users=10), workload, Connections())
    assert (facts.connections_per_user, facts.most_connections_per_user) == (6, 6)
    streams = load_facts(ClosedLoad(users=10), workload, Connections(http_version="2"))
    assert (streams.connections_per_user, streams.streams_per_connection) == (1, 6)
    # Two steps need no more than two connections.
    fewer = written(tmp_path, "steps: [{parallel: {at_once: 8}, steps: [{path: /a}, {path: /b}]}]")
    assert fewer.requests_at_once == 2


def test_requests_in_blocks_are_found_counted_and_changed(tmp_path: Path) -> None:
    workload = written(tmp_path, FILE)
    (walk,) = workload.walks
    assert [step.path for step in workload.all_steps][1:] == [
        "/login",
        "/a",
        "/${part}",
        "/b",
        "/c",
        "/d",
        "/e",
    ]
    assert walk.length == 1 + 1 + 2 + 2 + 2 + 1
    assert walk.leading == ()
    renamed = workload.with_steps(lambda step: step.model_copy(update={"name": "n"}), pausing=False)
    assert {step.name for step in renamed.all_steps} == {"n"}
    assert "uniform" not in str(scenario_of(renamed))
    again = Workload.model_validate(workload.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    assert again == workload


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ("{once: true, group: true, steps: [{path: /}]}", "once and group"),
        ("{once: true}", "'once'"),
        ("{pause: {kind: constant, ms: 1}, steps: [{path: /}]}", "'pause'"),
        ("{if: {left: a, op: '=='}, steps: [{path: /}]}", "left, op and right"),
        ("{loop: {count: 1, over: []}, steps: [{path: /}]}", "count, while, over and each"),
        ("{choice: random, weights: [1], steps: [{path: /}, {path: /a}]}", "'weights'"),
        ("{once: true, else: [{path: /}], steps: [{path: /}]}", "'else'"),
        ("{set: {a: b}}", "steps"),
        ("{loop: {cont: 1}, steps: [{path: /}]}", "cont"),
        ("{parallel: {at_once: 0}, steps: [{path: /}]}", "at_once"),
        ("{parallel: {at_once: 2, as: x}, steps: [{path: /}]}", "'as_json'"),
        (
            "{parallel: {at_once: 2}, steps: [{parallel: {at_once: 2}, steps: [{path: /}, {path: /}]}]}",
            "nested",
        ),
        ("{parallel: {at_once: 2}, steps: [{parallel: {at_once: 1}, steps: [{path: /}]}]}", "nested"),
    ],
)
def test_blocks_that_cannot_work_are_refused(tmp_path: Path, block: str, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        written(tmp_path, f"steps:\n  - {block}\n")
