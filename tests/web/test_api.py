"""The JSON of the site is that of `--json`; uploads need a token and are checked as an import is."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from prony.report.delivery import as_plain
from prony.report.export import to_json
from prony.report.listings import ListOut
from prony.report.reading import load_result
from prony.report.schema import ResultOut, TwoResultsOut
from prony.store import Search, Store, transfer
from prony_serve.trends.out import SeriesListOut, TrendOut
from prony_serve.web.access import Rules

from .conftest import Shown, reader

TOKEN = "correct-horse-battery-staple"
BEARER = {"authorization": f"Bearer {TOKEN}"}


def test_each_address_gives_the_model_of_the_contract(shown: Shown) -> None:
    client = shown.client
    newest, second = shown.store.search(Search(), limit=2).experiments
    listed = client.get("/api/results?limit=7&offset=3").json()
    assert listed == as_plain(ListOut.of(shown.store.search(Search(), limit=7, offset=3)))
    result = client.get(f"/api/results/{newest.id}")
    assert result.json() == as_plain(to_json(load_result(shown.store, newest.id)))
    ResultOut.model_validate_json(result.body)
    TwoResultsOut.model_validate_json(client.get(f"/api/compare/{newest.id}/{second.id}").body)
    SeriesListOut.model_validate_json(client.get("/api/trends").body)
    seeded = shown.seeded
    words = f"server={seeded.server}&workload={seeded.workload}&load={seeded.load_name.replace(' ', '+')}"
    TrendOut.model_validate_json(client.get(f"/api/trend?{words}").body)
    assert client.get("/api/running").json() == {"schema": 1, "kind": "running", "running": []}


@pytest.mark.parametrize(
    "path", ["/api/results?limit=501", "/api/results?offset=-1", "/api/results?conforming=x"]
)
def test_a_query_that_means_nothing_is_refused(shown: Shown, path: str) -> None:
    reply = shown.client.get(path)
    assert reply.status == 400
    assert "expected" in reply.json()["error"]


@pytest.fixture(scope="module")
def export(shown: Shown, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("export") / "export"
    transfer.write(shown.store, shown.store.experiment("latest").id, path)
    return path.read_bytes()


def in_pieces(body: bytes) -> Iterator[bytes]:
    for at in range(0, len(body), 4096):
        yield body[at : at + 4096]


def test_an_upload_is_imported_and_twice_is_once(empty: Store, export: bytes) -> None:
    client = reader(empty, Rules(token=TOKEN))
    first = client.post("/api/results", in_pieces(export), **BEARER)
    assert first.status == 201
    stored = first.json()
    assert stored["added"] == 6
    assert first.headers["location"] == f"/results/{stored['id']}"
    assert client.get(f"/api/results/{stored['id']}", **BEARER).status == 200
    again = client.post("/api/results", export, **BEARER)
    assert (again.status, again.json()["added"]) == (200, 0)
    assert len(empty.trials(stored["id"])) == 6


def test_an_upload_needs_a_token_even_on_loopback(empty: Store, export: bytes) -> None:
    refused = reader(empty).post("/api/results", export)
    assert refused.status == 401
    assert "--token-file" in refused.json()["error"]
    wrong = reader(empty, Rules(token=TOKEN)).post(
        "/api/results", export, authorization="Bearer wrong-wrong-wrong"
    )
    assert wrong.status == 401
    inside = reader(empty, Rules(token=TOKEN))
    form = {"content_type": "application/x-www-form-urlencoded", "origin": "http://127.0.0.1:8321"}
    inside.post("/login", f"token={TOKEN}".encode(), **form)
    by_cookie = inside.post("/api/results", export, origin="http://127.0.0.1:8321")
    assert by_cookie.status == 401
    assert empty.search(Search()).total == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"hello", 422),
        (b"<!doctype html><script>alert(1)</script>", 422),
        (b"{}", 422),
        (gzip.compress(b"\x00" * 1000, mtime=0), 422),
        (b"[" * 100_000, 422),
        (gzip.compress(b"[" * 100_000, mtime=0), 422),
        (b'{"prony_rescue": 3, "x": ' + b"[" * 100_000, 422),
        (b'{"prony_rescue": 3, "trial": 7, "judgement": 7}', 422),
    ],
)
def test_what_is_no_export_is_refused(empty: Store, body: bytes, status: int) -> None:
    reply = reader(empty, Rules(token=TOKEN)).post("/api/results", body, **BEARER)
    assert reply.status == status
    assert reply.json()["error"]
    assert "/tmp" not in reply.text
    assert empty.search(Search()).total == 0


@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_a_damaged_export_is_refused_whole(empty: Store, export: bytes, cut: float) -> None:
    reply = reader(empty, Rules(token=TOKEN)).post("/api/results", export[: int(len(export) * cut)], **BEARER)
    assert reply.status == 422
    assert empty.search(Search()).total == 0


def test_an_upload_that_is_too_large_is_refused_early(empty: Store) -> None:
    client = reader(empty, Rules(token=TOKEN), most_upload_bytes=2**20)
    declared = client.post("/api/results", b"x", content_length=str(2**30), **BEARER)
    assert declared.status == 413
    assert declared.json() == {"error": "the upload is larger than 1 MiB; nothing was stored"}

    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"\x00" * 2**18

    client_without_length = reader(empty, Rules(token=TOKEN), most_upload_bytes=2**20)
    reply = client_without_length.post("/api/results", endless(), **BEARER)
    assert reply.status == 413


def test_an_export_that_unpacks_to_a_bomb_is_refused(
    empty: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prony_serve.web.api.EXPANDS_TO_BYTES", 2**20)
    bomb = gzip.compress(b'{"format": "prony-results", "version": 2, "x": "' + b"0" * 2**23 + b'"}\n')
    reply = reader(empty, Rules(token=TOKEN)).post("/api/results", bomb, **BEARER)
    assert reply.status in (413, 422)
    assert list(tmp_path.glob("prony-upload-*")) == []


def test_a_store_that_cannot_be_written_says_so(
    empty: Store, export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prony.errors import StoreError

    def full(*_: object, **__: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(Store, "add_raw", full)
    monkeypatch.setattr(Store, "check_writable", full)
    reply = reader(empty, Rules(token=TOKEN)).post("/api/results", export, **BEARER)
    assert (reply.status, reply.json()) == (503, {"error": "The disk is full."})
