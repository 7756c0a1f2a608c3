"""The documents that `prony results push` sends, as the body of a `_bulk` request: newline-delimited JSON, an
action and a document in turn. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from prony.report.exports import Exported, Format
from prony.report.result import ResultView
from prony_serve.documents import documents


def write(view: ResultView) -> Exported:
    """`create` with an id: sent twice to one data stream it makes no second document."""

    def lines() -> Iterator[str]:
        for one in documents(view):
            yield json.dumps({"create": {"_index": one.stream, "_id": one.id}}) + "\n"
            yield json.dumps(one.body, ensure_ascii=False, allow_nan=False) + "\n"

    return Exported(lines())


FORMAT = Format("documents for Elasticsearch or OpenSearch, as a _bulk body", write, ".ndjson")
