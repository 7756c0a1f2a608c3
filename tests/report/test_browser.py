"""The page in a real browser: it draws, is quiet, asks the network for nothing, follows light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.report.html import render_html, write_text
from prony.report.reading import load_exported
from prony_explain.flame import WIDTH

from . import factory
from .browser import browsing, opened
from .page import Page, brightness, rendered
from .test_explained import result as explained

pytestmark = [pytest.mark.e2e, pytest.mark.needs("chromium")]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_text(rendered(factory.four_troubled), path)
    return path


@pytest.mark.everyday
def test_it_opens_without_a_word_of_complaint_and_without_the_network(page: Path, tmp_path: Path) -> None:
    seen = opened(page, tmp_path)
    assert seen.console == ()
    assert seen.addresses == ()
    dom = Page(seen.html)
    assert dom.all("h1")[0].text == factory.TITLE
    sections = {e.attributes.get("id") for e in dom.all("section")}
    assert {"results", "ratios", "latency", "throughput", "findings", "trials", "host", "plan"} <= sections
    assert len([e for e in dom.all("svg") if e.attributes.get("role") == "img"]) == 27
    assert len([e for e in dom.all("path") if "svg" in e.inside]) > 100


def test_the_tests_own_eyes_see_a_request_and_a_complaint(tmp_path: Path) -> None:
    """The check above would be worth nothing if it could not fail."""
    bad = tmp_path / "bad.html"
    policy = '<meta http-equiv="Content-Security-Policy" content="style-src \'none\'">'
    bad.write_text(
        f'<!doctype html>{policy}<title>x</title><img src="http://127.0.0.1:9/x.png"><p style="color: red">'
        '<script>console.error("oh", "no"); throw Error("broken")</script>'
    )
    seen = opened(bad, tmp_path)
    assert seen.addresses == ("http://127.0.0.1:9/x.png",)
    for complaint in ("oh no", "Uncaught", "Content Security Policy"):
        assert any(complaint in line for line in seen.console), (complaint, seen.console)


def test_light_and_dark_follow_the_reader(page: Path, tmp_path: Path) -> None:
    seen = {scheme: brightness(opened(page, tmp_path, scheme=scheme).picture) for scheme in ("light", "dark")}
    assert seen["light"] > 0.8
    assert seen["dark"] < 0.25


SCREENS = ((1280, 800), (375, 667))
BELOW = "Math.round(document.querySelector('{}').getBoundingClientRect().bottom)"


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_the_first_screen_says_which_by_how_much_and_how_sure(
    width: int, height: int, tmp_path: Path
) -> None:
    few, many, none = (tmp_path / f"{name}.html" for name in ("few", "many", "none"))
    write_text(rendered(factory.full), few)
    write_text(rendered(factory.twenty), many)
    write_text(rendered(factory.hopeless), none)
    with browsing(tmp_path, width=width, height=height) as tab:

        def ends_at(page: Path, what: str) -> int:
            tab.go(page.as_uri())
            assert tab.run("document.documentElement.scrollWidth") <= width, page.name
            return int(tab.run(BELOW.format(what)))

        wide = width > 1000
        assert ends_at(few, ".said") < height
        assert ends_at(few, f".answer tbody tr:nth-child({3 if wide else 1}) .drawing.budget") < height
        if wide:
            assert ends_at(few, ".foot") < height
        assert ends_at(many, f".answer tbody tr:nth-child({15 if wide else 1})") < height
        assert ends_at(none, ".said.not_conforming") < height
        assert tab.run("document.querySelectorAll('.answer').length") == 0


@pytest.mark.parametrize("width", [1280, 375, 320])
def test_drawings_of_a_table_have_one_scale_whatever_is_reported_beside_them(
    width: int, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    results = Path(__file__).resolve().parents[2] / "docs" / "results" / "sync-vs-async" / "results.prony"
    write_text(render_html(load_exported(results)), page)
    with browsing(tmp_path, width=width, height=800) as tab:
        tab.go(page.as_uri())
        assert tab.run("document.documentElement.scrollWidth") <= width
        tab.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert tab.run("document.documentElement.scrollWidth") <= width
        for which, rows in (("td.drawing:not(.budget)", 7), ("tbody td.budget", 7)):
            widths = tab.run(
                f"Array.from(document.querySelectorAll('.answer {which} svg.row'), one => "
                "Math.round(one.getBoundingClientRect().width))"
            )
            assert len(widths) == rows
            assert len(set(widths)) == 1
            assert widths[0] > 90


def test_a_link_to_what_is_folded_unfolds_it(page: Path, tmp_path: Path) -> None:
    with browsing(tmp_path) as tab:
        tab.go(f"{page.as_uri()}#trials")
        tab.wait("document.querySelector('#trials').closest('details').open")
        assert tab.run("document.querySelectorAll('details[open]').length") == 1


FLAME = "document.querySelector('svg.flame')"
BOXES = f"""Array.from({FLAME}.querySelectorAll('g[data-x]'), one => {{
  const rect = one.querySelector('rect');
  return {{
    name: one.querySelector('title').textContent.split(': ')[0],
    from: +one.dataset.x, to: +one.dataset.x + +one.dataset.w, shown: one.style.display !== 'none',
    width: +rect.getAttribute('width'), found: rect.getAttribute('stroke') === '#000',
    pale: one.style.opacity === '0.35' }}; }})"""
"""Each box of the first flame graph: its place as shares of the whole, and how it is drawn now."""


def box(at: int) -> str:
    return f"{FLAME}.querySelectorAll('g[data-x]')[{at}]"


def test_a_box_of_a_flame_graph_is_enlarged_by_click_and_by_enter(tmp_path: Path) -> None:
    page = tmp_path / "explained.html"
    write_text(rendered(explained), page)
    with browsing(tmp_path, width=1280, height=800) as tab:
        tab.go(page.as_uri())
        tab.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        whole = tab.run(BOXES)
        at, chosen = next((at, one) for at, one in enumerate(whole) if 0.1 < one["to"] - one["from"] < 0.5)
        callers = [one["from"] <= chosen["from"] and one["to"] >= chosen["to"] for one in whole]
        beside = [one["to"] <= chosen["from"] or one["from"] >= chosen["to"] for one in whole]
        assert sum(callers) > 1
        assert sum(beside) > 1

        def enlarged() -> bool:
            now = tab.run(BOXES)
            wide = [one["shown"] and one["width"] > WIDTH - 1 for one in now]
            hidden = [not one["shown"] for one in now]
            return all(w for w, is_one in zip(wide, callers, strict=True) if is_one) and all(
                h for h, is_one in zip(hidden, beside, strict=True) if is_one
            )

        assert not enlarged()
        tab.run(f"{box(at)}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        x, y = tab.run(
            f"(() => {{ const at = {box(at)}.querySelector('rect').getBoundingClientRect(); "
            "return [at.x + at.width / 2, at.y + at.height / 2]; })()"
        )
        tab.click(x, y)
        assert enlarged()
        tab.run(f"{box(0)}.focus()")
        tab.press("Enter")
        again = tab.run(BOXES)
        assert [one["shown"] for one in again] == [one["shown"] for one in whole], (
            "the lowest shows all again"
        )
        assert [one["width"] for one in again] == pytest.approx([one["width"] for one in whole], abs=0.2)
        tab.run(f"{box(at)}.focus()")
        tab.press("Enter")
        assert enlarged()
        assert tab.console == ()


def test_a_search_says_the_share_of_all_boxes_of_that_name(tmp_path: Path) -> None:
    page = tmp_path / "explained.html"
    write_text(rendered(explained), page)
    with browsing(tmp_path, width=1280, height=800) as tab:
        tab.go(page.as_uri())
        tab.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        tab.run("document.querySelector('.flame-search input').focus()")
        tab.type("Tomcat")
        boxes = tab.run(BOXES)
        found = [box for box in boxes if "tomcat" in box["name"].lower()]
        assert [box["found"] for box in boxes] == [box in found for box in boxes]
        assert [box["pale"] for box in boxes] == [box not in found for box in boxes]
        covered = [
            any(one["from"] <= place < one["to"] for one in found)
            for place in ((at + 0.5) / 10_000 for at in range(10_000))
        ]
        share = sum(covered) / 100
        assert 5 < share < 100, "a search that finds something, and not everything"
        told = tab.run("document.querySelector('.flame-search output').textContent")
        assert float(told.removesuffix(" %")) == pytest.approx(share, abs=0.2)
        tab.run(
            "(() => { const one = document.querySelector('.flame-search input'); one.value = ''; "
            "one.dispatchEvent(new Event('input')); })()"
        )
        assert tab.run("document.querySelector('.flame-search output').textContent") == ""
        assert not any(one["found"] or one["pale"] for one in tab.run(BOXES))
        assert tab.console == ()
