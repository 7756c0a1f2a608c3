"""A far end that answers as it is told: enough of a search engine for the client, and every way to fail. What
a real one does is in test_real_engines.py.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CLUSTER = "c2f1"


@dataclass
class FarEnd:
    """What it was sent, and how it is to answer. `script`: for each bulk request from the first: a status to
    answer with, `half` to keep half of it and hang up, `short` to mention half of it, `html` for a page, None
    to take it.
    """

    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    script: list[int | str | None] = field(default_factory=list)
    everywhere: int | None = None
    """A status for every request."""
    item_status: dict[str, int] = field(default_factory=dict)
    """Part of a document's id -> the status of its item."""
    most_documents: int | None = None
    """Larger bulk requests are answered with 413."""
    data_streams: bool = True
    bulks: int = 0
    puts: dict[str, Any] = field(default_factory=dict)
    headers: list[str] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def bulk(self, body: str) -> tuple[int, Any]:
        """One request: its status and its response; a status of 0: the connection is cut."""
        lines = [json.loads(line) for line in body.splitlines() if line]
        pairs = list(zip(lines[::2], lines[1::2], strict=True))
        with self.lock:
            self.bulks += 1
            told = self.script.pop(0) if self.script else None
            if isinstance(told, int):
                return told, {"error": {"type": "told", "reason": f"to say {told}"}, "status": told}
            if told == "html":
                return 200, "<html>a proxy</html>"
            if self.most_documents is not None and len(pairs) > self.most_documents:
                return 413, ""
            if told in {"half", "short"}:
                pairs = pairs[: len(pairs) // 2]
            items = [self._create(action["create"], document) for action, document in pairs]
            return (0, None) if told == "half" else (200, {"errors": True, "items": items})

    def _create(self, action: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
        identifier = action["_id"]
        status = next((n for part, n in self.item_status.items() if part in identifier), 201)
        if status == 201 and identifier in self.documents:
            status = 409
        if status == 201:
            self.documents[identifier] = document | {"_stream": action["_index"]}
        item: dict[str, Any] = {"_id": identifier, "_index": action["_index"], "status": status}
        if status >= 400:
            item["error"] = {"type": "told", "reason": f"to say {status}"}
        return {"create": item}


@contextmanager
def far_end(**told: Any) -> Iterator[FarEnd]:
    """One on a free port of the loopback address."""
    end = FarEnd(**told)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            end.headers.append(self.headers.get("Authorization", ""))
            status, made = (
                end.everywhere,
                {"error": {"type": "told", "reason": "no"}, "status": end.everywhere},
            )
            if status is None:
                status, made = self._routed(self.path.partition("?")[0], body)
            if status == 0:
                self.close_connection = True
                self.connection.close()
                return
            html = isinstance(made, str) and made.startswith("<")
            data = (made if isinstance(made, str) else json.dumps(made)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if html else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_HEAD = _answer  # noqa: N815

        def _routed(self, path: str, body: str) -> tuple[int, Any]:
            if path.endswith("/_bulk"):
                return end.bulk(body)
            if path.endswith("/_search"):
                wanted = json.loads(body)["query"]["ids"]["values"]
                return 200, {"hits": {"hits": [{"_id": one} for one in wanted if one in end.documents]}}
            if self.command == "HEAD":
                return (200 if end.documents else 404), ""
            if "_nodes" in path:
                return 200, {"nodes": {"one": {"ingest": {"processors": [{"type": "set"}]}}}}
            if self.command == "PUT":
                made = json.loads(body)
                if "data_stream" in made and not end.data_streams:
                    return 400, {
                        "error": {"type": "illegal", "reason": "the data stream module is not there"}
                    }
                end.puts[path] = made
                return 200, {"acknowledged": True}
            if path in end.puts:
                made = end.puts[path]
                if "_index_template" in path:
                    return 200, {"index_templates": [{"name": "prony", "index_template": made}]}
                return 200, {"prony": made}
            if path == "/":
                return 200, {"cluster_uuid": CLUSTER, "version": {"number": "2.19.6"}}
            return 404, {"error": "nothing here", "status": 404}

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    end.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield end
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
