"""Ingest pipeline and index template of a cluster. Pure."""

from __future__ import annotations

from typing import Any

from prony_serve.documents import EXPERIMENTS, INTERVALS, TRIALS

STREAMS = (EXPERIMENTS, TRIALS, INTERVALS)
NAME = "prony"
"""Name of the template and of the pipeline."""
VERSION = 3
"""Version of both; raised with every change. A newer one on the cluster is kept."""
PRIORITY = 200
"""Above the clusters' catch-all templates (100)."""


NUMBERS = ("long", "double")


def pipeline(processors: frozenset[str]) -> dict[str, Any]:
    """Stamps each document with its arrival, and keeps documents that a processor fails on. `processors`: the
    cluster's; a node without the module `ingest-common` has none, and documents are stored unchanged.
    """
    steps: list[dict[str, Any]] = []
    if "set" in processors:
        stamp = {"field": "event.ingested", "value": "{{_ingest.timestamp}}", "ignore_failure": True}
        steps.append({"set": stamp})
        steps.append({"set": {"field": "event.module", "value": "prony"}})
    return {"description": "Results of Prony", "version": VERSION, "processors": steps}


def template(*, data_streams: bool) -> dict[str, Any]:
    """The template of all three streams. `data_streams` False: the cluster has none; indices are used."""
    body: dict[str, Any] = {
        "index_patterns": [f"{stream}*" for stream in STREAMS],
        "priority": PRIORITY,
        "version": VERSION,
        "template": {
            "settings": {
                "index": {
                    "number_of_shards": 1,
                    "auto_expand_replicas": "0-1",
                    "default_pipeline": NAME,
                    "mapping": {"total_fields": {"limit": 2000}},
                }
            },
            "mappings": mappings(),
        },
        "_meta": {"description": "Results of Prony: experiments, trials and the seconds of their runs"},
    }
    if data_streams:
        body["data_stream"] = {}
    return body


def mappings() -> dict[str, Any]:
    """Identities are keywords, sentences text, figures doubles (dynamic mapping would make longs)."""
    keyword = {"type": "keyword", "ignore_above": 1024}
    text = {"type": "text"}
    date, double = {"type": "date"}, {"type": "double"}
    return {
        "dynamic_templates": [
            {"figures": {"path_match": "figures.*", "mapping": double}},
            *(
                {f"{kind}{end}": {"match": f"*{end}", "match_mapping_type": kind, "mapping": double}}
                for end in ("_ms", "_per_s")
                for kind in NUMBERS
            ),
            *(
                {f"{kind}_bounds": {"path_match": f"{part}.*", "match_mapping_type": kind, "mapping": double}}
                for part in ("uncertainty", "pairs")
                for kind in NUMBERS
            ),
            {"strings": {"match_mapping_type": "string", "mapping": keyword}},
        ],
        "properties": {
            "@timestamp": date,
            "started": date,
            "created": date,
            "experiment": {
                "properties": {
                    "id": keyword,
                    "title": {"type": "text", "fields": {"keyword": keyword}},
                    "command": keyword,
                    "quick": {"type": "boolean"},
                }
            },
            "trial": {
                "properties": {
                    "id": keyword,
                    "kind": keyword,
                    "block": {"type": "integer"},
                    "position": {"type": "integer"},
                }
            },
            "server": keyword,
            "workload": keyword,
            "part": keyword,
            "cell": keyword,
            "load": {
                "properties": {
                    "name": keyword,
                    "model": keyword,
                    "users": {"type": "integer"},
                    "offered_per_s": {"type": "double"},
                }
            },
            "host": {"properties": {"name": keyword, "fingerprint": keyword}},
            "conforms": {"type": "boolean"},
            "not_conforming": keyword,
            "sentence": text,
            "counts": {"type": "boolean"},
            "repeated": {"type": "boolean"},
            "why": text,
            "warnings": text,
            "notes": text,
            "findings": {
                "properties": {
                    "check": keyword,
                    "code": keyword,
                    "kind": keyword,
                    "provided": text,
                    "value": keyword,
                    "limit": text,
                    "reason": text,
                    "advice": text,
                }
            },
            "row": {
                "properties": {
                    "in_window": {"type": "boolean"},
                    "completed": {"type": "long"},
                    "failed": {"type": "long"},
                    "client_cpu": {"type": "double"},
                }
            },
        },
    }
