"""Trends of the seeded store: its two planted changes are found and no other; another kernel is a break."""

from __future__ import annotations

import re
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest

from prony.store import Store
from prony_serve.trends import otava
from prony_serve.trends.series import TrendView
from prony_serve.web import site, trend_pages
from prony_serve.web.drawing import DrawnTrend, draw_trend

from .conftest import Shown, reader

needs_otava = pytest.mark.skipif(not otava.is_installed(), reason=f"Apache Otava is missing: {otava.INSTALL}")
ATOM = "{http://www.w3.org/2005/Atom}"


def address(
    shown: Shown, server: str, figure: str = "requests_per_s", at: str = "/trend", **more: str
) -> str:
    seeded = shown.seeded
    words = {
        "server": server,
        "workload": seeded.workload,
        "load": seeded.load_name,
        "figure": figure,
        **more,
    }
    return f"{at}?{urlencode(words)}"


@needs_otava
def test_the_planted_changes_are_found_and_no_other(shown: Shown) -> None:
    found = shown.client.get(address(shown, shown.seeded.server, at="/api/trend")).json()
    assert [one["experiment"] for one in found["changes"]] == [
        one.experiment_id for one in shown.seeded.planted
    ]
    for one, planted in zip(found["changes"], shown.seeded.planted, strict=True):
        assert one["ratio"] - 1 == pytest.approx(planted.change, abs=0.01)
        assert one["direction"] == ("better" if planted.change > 0 else "worse")
    assert [one["started"] for one in found["breaks"]] == [
        next(t["started"] for t in found["trials"] if t["setting"] == 1)
    ]
    what = {what: (before, after) for what, before, after in found["breaks"][0]["differences"]}
    assert what["host: kernel"][1] == "6.12.57"
    unchanged = shown.client.get(address(shown, shown.seeded.unchanged, at="/api/trend")).json()
    assert unchanged["changes"] == []
    assert len(unchanged["breaks"]) == 1


@needs_otava
def test_what_changed_is_said_field_by_field(shown: Shown) -> None:
    found = shown.client.get(address(shown, shown.seeded.server, at="/api/trend")).json()
    first = {what: (before, after) for what, before, after in found["changes"][0]["differences"]}
    assert first["version: tomcat"] == ("10.1.42", "10.1.43")
    assert not any(what.startswith("host:") for what in first)


@needs_otava
def test_the_page_shows_each_trial_its_change_and_its_break(shown: Shown) -> None:
    reply = shown.client.get(address(shown, shown.seeded.server))
    page = reply.page
    trials = [e for e in page.all("tr") if "data-row" in e.attributes]
    marks = re.findall(r'<path data-row="(\d+)"', reply.text)
    assert marks == [str(k) for k in range(len(trials))] * 2  # the wide drawing and the narrow one
    assert len([e for e in page.all("article") if e.attributes.get("class") == "change"]) == 3
    (chart, _) = [e for e in page.all("svg") if e.attributes.get("role") == "img"]
    assert "2 changes" in chart.text


def test_over_commits(shown: Shown) -> None:
    reply = shown.client.get(address(shown, shown.seeded.server, by="commit"))
    assert reply.status == 200
    assert '<path data-row="0"' in reply.text
    assert shown.client.get(address(shown, shown.seeded.server, by="moon")).status == 400


def test_a_trend_is_drawn_once_for_each_state_of_its_series(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With thousands of trials it takes seconds of a CPU."""
    drawings: list[bool] = []

    def counted(view: TrendView, *, commits: bool = False) -> DrawnTrend | None:
        drawings.append(commits)
        return draw_trend(view, commits=commits)

    monkeypatch.setattr(trend_pages, "draw_trend", counted)
    monkeypatch.setattr(site, "KEPT_S", 1e9)
    client = reader(shown.store)
    first, again = (client.get(address(shown, shown.seeded.server)) for _ in range(2))
    assert again.text == first.text
    assert drawings == [False]
    client.get(address(shown, shown.seeded.server, by="commit"))
    client.get(address(shown, shown.seeded.server, figure="p99_ms"))
    client.get(address(shown, shown.seeded.unchanged))
    assert drawings == [False, True, False, False]


def test_trends_lists_every_series(shown: Shown) -> None:
    html = shown.client.get("/trends").text
    for server in (shown.seeded.server, shown.seeded.unchanged):
        assert f"server={server}" in html
    listed = shown.client.get("/api/trends").json()["series"]
    assert sum(one["trials"] for one in listed) == shown.seeded.trials


@needs_otava
def test_the_feed_has_an_entry_for_each_planted_change_and_no_other(shown: Shown) -> None:
    reply = shown.client.get("/changes.atom")
    assert reply.headers["content-type"].startswith("application/atom+xml")
    root = ElementTree.fromstring(reply.body)
    entries = root.findall(f"{ATOM}entry")
    planted = {one.experiment_id for one in shown.seeded.planted}
    firsts = {summary for one in entries if (summary := one.findtext(f"{ATOM}summary"))}
    assert len(entries) == len(planted)
    assert all(any(identifier in text for text in firsts) for identifier in planted)
    assert all(shown.seeded.server in (one.findtext(f"{ATOM}title") or "") for one in entries)
    for one in entries:
        link = one.find(f"{ATOM}link")
        assert link is not None
        assert shown.client.get(link.attrib["href"].removeprefix("http://127.0.0.1:8321")).status == 200
    again = ElementTree.fromstring(reader(shown.store).get("/changes.atom").body)
    assert [e.findtext(f"{ATOM}id") for e in again.iter(f"{ATOM}entry")] == [
        e.findtext(f"{ATOM}id") for e in entries
    ]
    assert "Tomcat" in shown.client.get("/changes").text or "tomcat" in shown.client.get("/changes").text


def test_without_otava_the_trials_are_shown_and_the_page_says_why(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otava, "is_installed", lambda: False)
    client = reader(shown.store)
    reply = client.get(address(shown, shown.seeded.server))
    assert reply.status == 200
    assert otava.INSTALL in reply.text
    assert '<path data-row="0"' in reply.text
    assert otava.INSTALL in client.get("/changes").text
    assert client.get("/changes.atom").status == 200


def test_an_empty_feed_is_a_feed(empty: Store) -> None:
    root = ElementTree.fromstring(reader(empty).get("/changes.atom").body)
    assert root.findtext(f"{ATOM}updated") == "1970-01-01T00:00:00Z"
