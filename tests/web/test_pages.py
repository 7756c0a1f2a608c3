"""The pages: what is stored is found and shown, addresses stay, nothing is changed by looking."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from prony.store import Search, Store
from prony_serve.trends.stored import series_names
from prony_serve.web import asking

from .conftest import Shown, reader


def experiment_ids(html: str) -> list[str]:
    return re.findall(r'<input type="checkbox" name="id" value="([^"]+)"', html)


def test_the_list_is_newest_first_and_in_pages(shown: Shown) -> None:
    everything = [one.id for one in shown.store.search(Search(), limit=None).experiments]
    first = shown.client.get("/")
    assert first.status == 200
    assert first.page.all("h1")[0].text == "Experiments"
    listed, address = experiment_ids(first.text), "/?page=2"
    while address in (text := first.text) or f"page={address[-1]}" in text:
        first = shown.client.get(address)
        listed += experiment_ids(first.text)
        address = f"/?page={int(address[-1]) + 1}"
    assert listed == everything


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("server=jetty", True),
        ("server=spring-*", True),
        ("server=undertow", False),
        ("conforming=yes&conforming=no", None),
        ("conforming=yes", True),
        ("conforming=no", True),
        ("tag=release-1", 1),
        ("since=2026-11-09", True),
        ("since=2126-11-09", False),
        ("q=Nightly", True),
        ("workload=hello&server=tomcat", True),
        ("q=server:undertow", False),
        ("q=nightly+server:jetty+workload:hello", True),
        ("q=tag:release-1+nightly", 1),
        ("q=since:2126-11-09", False),
        ("q=http://127.0.0.1/nothing", False),
    ],
)
def test_a_search_finds_what_fits(shown: Shown, query: str, matches: bool | int | None) -> None:
    reply = shown.client.get(f"/?{query}")
    assert reply.status == 200
    found = experiment_ids(reply.text)
    if matches is not None:
        assert len(found) == matches if type(matches) is int else bool(found) == matches
    if not found:
        assert "No matches" in reply.text


def test_one_box_takes_every_field_and_shows_them_again() -> None:
    fields = asking.fields({"q": 'two words server:tomcat* tag:"a b" x:y', "since": "30d"})
    assert fields == {"q": "two words x:y", "server": "tomcat*", "tag": "a b", "since": "30d"}
    assert asking.fields({"q": asking.box(fields)}) == fields


def test_the_list_says_what_an_experiment_comes_to(shown: Shown) -> None:
    (newest,) = shown.store.search(Search(), limit=1).experiments
    assert shown.client.get(f"/results/{newest.id}").status == 200
    (again,) = shown.store.search(Search(), limit=1).experiments
    assert again.answer
    listed = [p for p in shown.client.get("/").page.all("p") if p.attributes.get("class") == "answer"]
    assert listed[0].text == again.answer


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/?conforming=good", 400, "conforming is &#39;good&#39;"),
        ("/?since=yesterday", 400, "since is &#39;yesterday&#39;"),
        ("/?since=0001-01-01T00:00:00%2B14:00", 400, "since"),
        ("/?until=9999-12-31T23:59:59-12:00", 400, "until"),
        ("/?since=1e9d", 400, "1e9d"),
        ("/?since=2026-02-30", 400, "2026-02-30"),
        ("/?tag=%00", 400, "NUL"),
        ("/?page=0", 400, "page is &#39;0&#39;"),
        ("/?page=%F0%9F%98%80", 400, "page"),
        (f"/?q={'x' * 300}", 400, "300"),
        ("/results/nothing", 404, "nothing"),
        ("/results/..%2f..%2fetc%2fpasswd", 404, ""),
        ("/results/../../etc/passwd", 404, ""),
        ("/static/x/../../../etc/passwd", 404, ""),
        ("/compare?id=a", 400, "1 results"),
        ("/compare/latest/latest", 400, "26"),
        ("/hosts/none", 404, "none"),
        ("/trend", 400, "server, workload, load"),
        ("/trend?server=a&workload=b&load=c", 404, "a, b, c"),
        ("/no/such/page", 404, "page"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(shown: Shown, path: str, status: int, sentence: str) -> None:
    reply = shown.client.get(path)
    assert reply.status == status
    assert sentence.lower() in reply.text.lower()
    assert "Traceback" not in reply.text
    if status != 404 or sentence:
        assert len(reply.page.all("h1")) == 1
    as_json = shown.client.get(path, accept="application/json").json()
    assert set(as_json) == {"error"}


def test_an_address_is_permanent_and_a_short_one_leads_to_it(shown: Shown) -> None:
    (newest,) = shown.store.search(Search(), limit=1).experiments
    led = shown.client.get("/results/latest")
    assert (led.status, led.headers["location"]) == (302, f"/results/{newest.id}")
    page = shown.client.get(led.headers["location"])
    assert page.status == 200
    sections = {e.attributes.get("id") for e in page.page.all("section")}
    assert {"results", "throughput", "host", "plan"} <= sections  # the report
    assert [e.text for e in page.page.all("a") if e.attributes.get("aria-current")] == ["Experiments"]
    assert "script-src" not in page.headers["content-security-policy"]
    assert shown.client.get(f"/results/{newest.id}/live").headers["location"] == f"/results/{newest.id}"


def test_two_ticked_results_stand_beside_each_other(shown: Shown) -> None:
    (newest, *_, oldest) = shown.store.search(Search(), limit=None).experiments
    led = shown.client.get(f"/compare?id={newest.id}&id={oldest.id}")
    assert led.headers["location"] == f"/compare/{newest.id}/{oldest.id}"
    page = shown.client.get(led.headers["location"])
    assert "confounded" in page.text  # another kernel
    assert "6.12.57" in page.text
    assert {e.text for e in page.page.all("h2")} >= {"What differs between the hosts"}


def test_hosts_are_told_apart_by_their_fingerprints(shown: Shown) -> None:
    listed = shown.client.get("/hosts")
    for key in shown.seeded.fingerprints:
        assert f'href="/hosts/{key}"' in listed.text
        page = shown.client.get(f"/hosts/{key}")
        assert page.status == 200
        assert experiment_ids(page.text) == []
        assert "kernel" in page.text


def test_only_reading_is_offered(shown: Shown) -> None:
    before = shown.store.search(Search(), limit=None)
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for path in ("/", "/results/latest", "/trends", "/hosts"):
            reply = shown.client.ask(method, path, headers={"accept": "application/json"})
            assert (reply.status, "error" in reply.json()) == (405, True)
    assert shown.store.search(Search(), limit=None) == before
    assert shown.client.ask("HEAD", "/").status == 200


def test_an_empty_store_says_what_to_do(empty: Store) -> None:
    client = reader(empty)
    for path in ("/", "/trends", "/hosts", "/changes"):
        assert client.get(path).status == 200
    assert "prony compare" in client.get("/").text
    assert client.get("/results/latest").status == 404


def test_static_files_are_kept_by_a_browser_and_others_are_not_there(shown: Shown) -> None:
    page = shown.client.get("/").page
    addresses = [
        e.attributes["href"] for e in page.all("link") if "stylesheet" in e.attributes.get("rel", "")
    ]
    addresses += [e.attributes["src"] for e in page.all("script")]
    assert len(addresses) == 2
    for address in addresses:
        reply = shown.client.get(address)
        assert reply.status == 200
        assert "immutable" in reply.headers["cache-control"]
        stale = shown.client.get(address.replace(address.split("/")[2], "0123"))
        assert (stale.body, stale.headers["cache-control"]) == (reply.body, "no-store")
    assert shown.client.get("/static/0123/site.py").status == 404


def test_a_defect_is_one_sentence_with_its_details_in_a_file(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(Store, "search", broken)
    reply = shown.client.get("/", accept="application/json")
    assert reply.status == 500
    said = reply.json()["error"]
    assert said
    assert "secret" not in said
    kept = Path(re.findall(r"in (/\S+) on", said)[0])
    assert "ZeroDivisionError: secret detail" in kept.read_text()
    kept.unlink()


def test_what_is_stored_is_text_and_no_page(shown: Shown, tmp_path: Path) -> None:
    """A server's title, a tag's note, a reason: whoever wrote them."""
    evil = "<img src=x onerror=alert(1)>'\""
    store = Store.open(tmp_path / "evil.db")
    (newest,) = shown.store.search(Search(), limit=1).experiments
    store.add_raw(shown.store.raw(newest.id))
    store.note(newest.id, evil)
    with store._database.writing() as connection:
        for table, column in (("experiments", "name"), ("trials", "server"), ("trial_summaries", "reason")):
            connection.exec_driver_sql(f"UPDATE {table} SET {column} = ?", (evil,))
    client = reader(store)
    for path in (
        "/",
        f"/results/{newest.id}",
        "/trends",
        "/changes",
        f"/?q={quote(evil)}",
        f"/?tag={quote(evil)}",
    ):
        reply = client.get(path)
        assert reply.status == 200, path
        assert "<img src=x" not in reply.text, path
    (series,) = {(one.server, one.workload, one.load_name) for one in series_names(store)}
    words = urlencode(dict(zip(("server", "workload", "load"), series, strict=True)))
    trend = client.get(f"/trend?{words}")
    assert trend.status == 200
    assert "<img src=x" not in trend.text
    assert evil in client.get("/trends").page.all("th")[-1].text
    assert any(evil in one.text for one in client.get(f"/results/{newest.id}").page.all("p")), "the note"
    store.close()


def test_what_turns_text_around_or_commands_a_terminal_is_a_replacement(shown: Shown, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "turned.db")
    (newest,) = shown.store.search(Search(), limit=1).experiments
    store.add_raw(shown.store.raw(newest.id))
    orders = "\u202e\u2066\u200f\u061c\x9b31m\x85\x1b]0;x\x07"
    store.note(newest.id, f"a{orders}b")
    with store._database.writing() as connection:
        for table, column in (("experiments", "name"), ("trials", "server"), ("trial_summaries", "reason")):
            connection.exec_driver_sql(f"UPDATE {table} SET {column} = ?", (f"a{orders}b",))
    client = reader(store)
    for path in ("/", f"/results/{newest.id}", "/trends", "/changes", "/changes.atom"):
        text = client.get(path).text
        assert not set(orders) - set("31m]0;x") & set(text), path
    assert "a\ufffd\ufffd\ufffd\ufffd\ufffd31m" in client.get("/").text
    store.close()
