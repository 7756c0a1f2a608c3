"""A push into real engines, which tools/search_node.py starts from their Maven artefacts: Elasticsearch 7.17
(there without data streams, which are Elastic's own module) and OpenSearch 2.19.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

pytest.importorskip("opensearchpy", reason="opensearch-py is not installed: make setup")

from prony.report.reading import load_result
from prony.store import Store
from prony_serve.documents import INTERVALS, TRIALS, documents
from prony_serve.push.cluster import Cluster
from prony_serve.push.faults import PushFault
from prony_serve.push.pushing import push
from tests.exports.stored import keep
from tests.report import factory

LAUNCHER = Path(__file__).resolve().parents[2] / "tools" / "search_node.py"


def asked(url: str, path: str, body: Any = None, method: str = "GET") -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{url}{path}", data, {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=60) as said:
        found: dict[str, Any] = json.loads(said.read() or "{}")
        return found


def every(url: str) -> Counter[str]:
    """How often each id is there, in all generations of all streams."""
    asked(url, "/prony-*/_refresh", method="POST")
    body = {"query": {"match_all": {}}, "_source": False, "size": 10_000}
    found = asked(url, "/prony-*/_search", body, "POST")
    return Counter(hit["_id"] for hit in found["hits"]["hits"])


@pytest.fixture(
    params=[
        pytest.param("elasticsearch", marks=pytest.mark.needs("elasticsearch")),
        pytest.param("opensearch", marks=pytest.mark.needs("opensearch")),
    ],
    scope="module",
)
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    launcher = subprocess.Popen(
        [sys.executable, str(LAUNCHER), request.param], stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True
    )
    try:
        assert launcher.stdout is not None
        url = launcher.stdout.readline().strip()
        assert url, launcher.communicate(timeout=60)[1]
        yield request.param, url
    finally:
        launcher.communicate(timeout=60)  # its standard input ends, and so does it


@pytest.mark.e2e
def test_a_push_is_complete_idempotent_and_found_again(
    engine: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, url = engine
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))
    store = Store.open(tmp_path / "results.db")
    identifier = keep(store, factory.troubled())
    view = load_result(store, identifier)
    wanted = Counter(one.id for one in documents(view))

    cluster = Cluster(url)
    found = push(store, identifier, cluster)
    assert found.sent.rejected == []
    assert every(url) == wanted
    assert cluster.data_streams is (name == "opensearch")
    if cluster.data_streams:
        streams = asked(url, "/_data_stream/prony-*")["data_streams"]
        assert {one["name"] for one in streams} >= {TRIALS, INTERVALS}
        # A new generation: the ids of the old one are no longer unique to the engine itself.
        asked(url, f"/{TRIALS}/_rollover", {}, "POST")
        asked(url, f"/{INTERVALS}/_rollover", {}, "POST")

    again = push(store, identifier, Cluster(url), again=True)
    assert again.sent.created == 0
    assert every(url) == wanted, "nothing doubled"

    body = {"size": 0, "query": {"term": {"experiment.id": identifier}},
            "aggs": {"server": {"terms": {"field": "server"},
                                "aggs": {"rate": {"avg": {"field": "figures.requests_per_s"}}}}}}  # fmt: skip
    buckets = asked(url, f"/{TRIALS}/_search", body, "POST")["aggregations"]["server"]["buckets"]
    rates = {one["key"]: one["rate"]["value"] for one in buckets}
    for server in {trial.record.server for trial in view.trials}:
        mine = [
            trial.figures["requests_per_s"]
            for trial in view.trials
            if trial.record.server == server and trial.conforms
        ]
        assert rates[server] == pytest.approx(sum(mine) / len(mine))


@pytest.mark.e2e
def test_a_full_disk_at_the_far_end_loses_nothing(
    engine: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, url = engine
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))
    store = Store.open(tmp_path / "results.db")
    keep(store, factory.experiment(blocks=2))  # makes sure that the streams are there
    push(store, "latest", Cluster(url))
    identifier = keep(store, factory.troubled())
    wanted = {one.id for one in documents(load_result(store, identifier))}
    block = {"index.blocks.read_only_allow_delete": True}  # what an engine sets itself at its flood stage
    asked(url, "/prony-*/_settings", block, "PUT")
    try:
        with pytest.raises(PushFault, match="read-only"):
            push(store, identifier, Cluster(url, sleep=lambda _s: None))
        assert not wanted & set(every(url))
    finally:
        asked(url, "/prony-*/_settings", {"index.blocks.read_only_allow_delete": None}, "PUT")
    push(store, identifier, Cluster(url))
    assert {one: n for one, n in every(url).items() if one in wanted} == dict.fromkeys(wanted, 1)
