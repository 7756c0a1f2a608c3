"""The saved objects for Kibana, as far as their schema goes: no Kibana is there to import them."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from prony_serve.documents import INTERVALS, TRIALS, documents
from prony_serve.push.dashboards import CHARTS, saved_objects
from tests.report import factory

OBJECT = {
    "type": "object",
    "required": ["type", "id", "attributes", "references", "migrationVersion", "coreMigrationVersion"],
    "additionalProperties": False,
    "properties": {
        "type": {"enum": ["index-pattern", "visualization", "dashboard"]},
        "id": {"type": "string", "minLength": 1},
        "attributes": {"type": "object", "required": ["title"]},
        "migrationVersion": {"type": "object", "additionalProperties": {"type": "string"}},
        "coreMigrationVersion": {"const": "7.17.0"},
        "references": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "type", "id"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string"},
                    "type": {"type": "string"},
                    "id": {"type": "string"},
                },
            },
        },
    },
}
"""Of each line but the last."""


def objects() -> list[dict[str, Any]]:
    return [json.loads(line) for line in saved_objects().splitlines()][:-1]


def test_each_line_is_a_saved_object_and_the_last_one_counts_them() -> None:
    lines = [json.loads(line) for line in saved_objects().splitlines()]
    for one in lines[:-1]:
        jsonschema.validate(one, OBJECT)
    assert lines[-1] == {"exportedCount": len(lines) - 1, "missingRefCount": 0, "missingReferences": []}


def test_what_is_referred_to_is_in_the_file() -> None:
    known = {(one["type"], one["id"]) for one in objects()}
    referred = {(ref["type"], ref["id"]) for one in objects() for ref in one["references"]}
    assert referred <= known
    (dashboard,) = [one for one in objects() if one["type"] == "dashboard"]
    panels = json.loads(dashboard["attributes"]["panelsJSON"])
    names = [f"{panel['panelIndex']}:{panel['panelRefName']}" for panel in panels]
    assert names == [ref["name"] for ref in dashboard["references"]]
    for one in objects():
        if one["type"] == "visualization":
            source = json.loads(one["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"])
            assert [source["indexRefName"]] == [ref["name"] for ref in one["references"]]


def test_charts_show_fields_that_documents_have() -> None:
    bodies = {one.stream: one.body for one in documents(factory.experiment(blocks=1))}
    for chart in CHARTS:
        assert chart.stream in {TRIALS, INTERVALS}
        value: Any = bodies[chart.stream]
        for part in chart.field.split("."):
            value = value[part]
        assert isinstance(value, float)
        assert (chart.query == "counts: true") is (chart.stream == TRIALS)
    assert bodies[TRIALS]["counts"] is True
    states = [
        json.loads(one["attributes"]["visState"]) for one in objects() if one["type"] == "visualization"
    ]
    for state in states:
        schemas = {one["schema"]: one["params"]["field"] for one in state["aggs"]}
        assert schemas["segment"] == "@timestamp"
        assert schemas["group"] in bodies[TRIALS]
