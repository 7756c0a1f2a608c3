"""Saved objects for Kibana 7.17: an index pattern per stream, four visualizations and a dashboard of them, as
the newline-delimited JSON that Kibana's import reads. Pure.

Written after the saved objects that Kibana 7.17 exports. No Kibana was there to import them; the tests hold
them to the schema of the file and to the fields of the documents.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from prony_serve.documents import EXPERIMENTS, INTERVALS, TRIALS

VERSION = "7.17.0"
"""What the objects are written for: newer versions migrate them."""
PANEL_WIDTH, PANEL_HEIGHT = 24, 15
"""Of the dashboard's 48 columns."""
COUNTING = "counts: true"
"""Trials whose figures are printed and compared (KQL): no control, each conforms, none was run again."""


@dataclass(frozen=True, slots=True)
class _Chart:
    """A line per server over time: the mean of a field in each bucket; a trial is one document."""

    id: str
    title: str
    stream: str
    field: str
    label: str
    query: str


CHARTS = (
    _Chart("prony-requests", "Requests per second, a mark per trial", TRIALS, "figures.requests_per_s",
           "requests/s", COUNTING),
    _Chart("prony-p99", "p99 in ms, a mark per trial", TRIALS, "figures.p99_ms", "p99, ms", COUNTING),
    _Chart("prony-cpu", "Server CPU per request in µs", TRIALS, "figures.server_cpu_us_per_request",
           "µs per request", COUNTING),
    _Chart("prony-seconds", "Requests per second within runs", INTERVALS, "row.completed_per_s",
           "requests/s", "row.in_window: true"),
)  # fmt: skip


def saved_objects() -> str:
    """The file: an object per line, and a last line that counts them."""
    objects = [
        *(_pattern(stream) for stream in (EXPERIMENTS, TRIALS, INTERVALS)),
        *map(_chart, CHARTS),
        _dashboard(),
    ]
    last = {"exportedCount": len(objects), "missingRefCount": 0, "missingReferences": []}
    return "".join(json.dumps(one, sort_keys=True) + "\n" for one in (*objects, last))


def _pattern(stream: str) -> dict[str, Any]:
    attributes = {"title": f"{stream}*", "timeFieldName": "@timestamp"}
    return _object("index-pattern", stream, attributes, [], {"index-pattern": "7.11.0"})


def _chart(chart: _Chart) -> dict[str, Any]:
    axis = {
        "id": "ValueAxis-1",
        "name": "LeftAxis-1",
        "type": "value",
        "position": "left",
        "show": True,
        "scale": {"type": "linear", "mode": "normal", "defaultYExtents": False},
        "labels": {"show": True, "rotate": 0, "filter": False, "truncate": 100},
        "title": {"text": chart.label},
        "style": {},
    }
    below = {
        "id": "CategoryAxis-1",
        "type": "category",
        "position": "bottom",
        "show": True,
        "scale": {"type": "linear"},
        "labels": {"show": True, "filter": True, "truncate": 100},
        "title": {},
        "style": {},
    }
    series = {
        "show": True,
        "type": "line",
        "mode": "normal",
        "data": {"id": "1", "label": chart.label},
        "valueAxis": "ValueAxis-1",
        "drawLinesBetweenPoints": chart.stream == INTERVALS,
        "showCircles": True,
        "lineWidth": 1,
        "interpolate": "linear",
    }
    state = {
        "title": chart.title,
        "type": "line",
        "aggs": [
            {
                "id": "1",
                "enabled": True,
                "type": "avg",
                "schema": "metric",
                "params": {"field": chart.field, "customLabel": chart.label},
            },
            {
                "id": "2",
                "enabled": True,
                "type": "date_histogram",
                "schema": "segment",
                "params": {
                    "field": "@timestamp",
                    "interval": "auto",
                    "min_doc_count": 1,
                    "drop_partials": False,
                },
            },
            {
                "id": "3",
                "enabled": True,
                "type": "terms",
                "schema": "group",
                "params": {"field": "server", "orderBy": "_key", "order": "asc", "size": 20},
            },
        ],
        "params": {
            "type": "line",
            "addTooltip": True,
            "addLegend": True,
            "legendPosition": "right",
            "categoryAxes": [below],
            "valueAxes": [axis],
            "seriesParams": [series],
        },
    }
    source = {
        "query": {"query": chart.query, "language": "kuery"},
        "filter": [],
        "indexRefName": "kibanaSavedObjectMeta.searchSourceJSON.index",
    }
    attributes = {
        "title": f"Prony: {chart.title}",
        "description": "",
        "uiStateJSON": "{}",
        "version": 1,
        "visState": json.dumps(state, sort_keys=True),
        "kibanaSavedObjectMeta": {"searchSourceJSON": json.dumps(source, sort_keys=True)},
    }
    reference = {"name": source["indexRefName"], "type": "index-pattern", "id": chart.stream}
    return _object("visualization", chart.id, attributes, [reference], {"visualization": "7.17.0"})


def _dashboard() -> dict[str, Any]:
    panels, references = [], []
    for place, chart in enumerate(CHARTS):
        where = {
            "x": place % 2 * PANEL_WIDTH,
            "y": place // 2 * PANEL_HEIGHT,
            "w": PANEL_WIDTH,
            "h": PANEL_HEIGHT,
            "i": str(place),
        }
        panels.append(
            {
                "version": VERSION,
                "type": "visualization",
                "panelIndex": str(place),
                "gridData": where,
                "embeddableConfig": {},
                "panelRefName": f"panel_{place}",
            }
        )
        references.append({"name": f"{place}:panel_{place}", "type": "visualization", "id": chart.id})
    attributes = {
        "title": "Prony",
        "description": "Trials that count over time, by server",
        "hits": 0,
        "version": 1,
        "timeRestore": True,
        "timeFrom": "now-30d",
        "timeTo": "now",
        "optionsJSON": json.dumps({"useMargins": True, "hidePanelTitles": False}),
        "panelsJSON": json.dumps(panels, sort_keys=True),
        "kibanaSavedObjectMeta": {
            "searchSourceJSON": json.dumps({"query": {"query": "", "language": "kuery"}, "filter": []})
        },
    }
    return _object("dashboard", "prony", attributes, references, {"dashboard": "7.17.0"})


def _object(
    kind: str,
    identifier: str,
    attributes: dict[str, Any],
    references: list[dict[str, Any]],
    migrated: dict[str, str],
) -> dict[str, Any]:
    return {
        "type": kind,
        "id": identifier,
        "attributes": attributes,
        "references": references,
        "migrationVersion": migrated,
        "coreMigrationVersion": VERSION,
    }
