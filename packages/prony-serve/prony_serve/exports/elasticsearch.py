"""The body of a `_bulk` request: newline-delimited JSON, an action line before each document. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator

from prony.report.exports import Exported, Format
from prony.report.result import ResultView
from prony_serve.documents import documents


def write(view: ResultView) -> Exported:
    """Action `create` with a fixed id: sending it twice creates one document."""

    def lines() -> Iterator[str]:
        for document in documents(view):
            yield json.dumps({"create": {"_index": document.stream, "_id": document.id}}) + "\n"
            yield json.dumps(document.body, ensure_ascii=False, allow_nan=False) + "\n"

    return Exported(lines())


FORMAT = Format("documents for Elasticsearch or OpenSearch, as a _bulk body", write, ".ndjson")
