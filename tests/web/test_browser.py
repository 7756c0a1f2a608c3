"""The site in a real browser: by keyboard alone, 375 px wide, light and dark, its contrast by axe-core, and
without scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from prony.store import Search, Store
from prony_serve import running
from prony_serve.journal import Journal
from tests.programs import program
from tests.report.browser import Tab, browsing
from tests.report.page import brightness

from .conftest import Shown
from .server import serving

pytestmark = [pytest.mark.e2e, pytest.mark.needs("chromium")]

CORNER = 120
ACTIVE = "(document.activeElement.innerText || document.activeElement.name || '').trim()"
AXE = (
    "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}).then(found => "
    "found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.html.slice(0, 160)).join(' | ')))"
)


@pytest.fixture(scope="module")
def site(shown: Shown) -> Iterator[str]:
    with serving(shown.store.where) as address:
        yield address


@pytest.fixture(scope="module")
def paths(shown: Shown) -> dict[str, str]:
    """Page -> its address."""
    newest, second = shown.store.search(Search(), limit=2).experiments
    seeded = shown.seeded
    words = {"server": seeded.server, "workload": seeded.workload, "load": seeded.load_name}
    return {
        "experiments": "/",
        "nothing found": "/?q=nothing-of-this-name",
        "report": f"/results/{newest.id}",
        "two": f"/compare/{newest.id}/{second.id}",
        "trends": "/trends",
        "trend": f"/trend?{urlencode(words)}",
        "changes": "/changes",
        "hosts": "/hosts",
        "host": f"/hosts/{newest.fingerprint_key}",
        "refused": "/?conforming=none",
    }


def quiet(tab: Tab) -> list[str]:
    """What the browser had to say but for a refusal that was asked for."""
    return [line for line in tab.console if "status of 400" not in line]


@pytest.mark.needs("axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_every_page_is_accessible_quiet_and_as_wide_as_the_screen(
    site: str, paths: dict[str, str], tmp_path: Path, scheme: str, width: int
) -> None:
    axe = Path(program("axe")).read_text(encoding="utf-8")
    faults: dict[str, list[str]] = {}
    with browsing(tmp_path, scheme=scheme, width=width, height=900) as tab:
        for name, path in paths.items():
            tab.go(site + path)
            assert tab.run("document.querySelectorAll('h1').length") == 1, name
            wide = tab.run("document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} px wide"
            bright = brightness(tab.picture(CORNER))
            assert bright > 0.7 if scheme == "light" else bright < 0.3, (name, bright)
            tab.run(f"{axe}; 0")
            if found := tab.run(AXE):
                faults[name] = found
        assert quiet(tab) == []
        assert all(address.startswith(f"{site}/") for address in tab.addresses)
    assert faults == {}


def test_a_word_of_hundreds_of_letters_widens_no_page(shown: Shown, tmp_path: Path) -> None:
    """A title and a note are whatever somebody wrote."""
    word = "x" * 300
    store = Store.open(tmp_path / "words.db")
    identifiers = [one.id for one in shown.store.search(Search(), limit=2).experiments]
    for one in identifiers:
        store.add_raw(shown.store.raw(one))
        store.note(one, word)
    with store._database.writing() as connection:
        connection.exec_driver_sql("UPDATE experiments SET name = ?", (word,))
    store.close()
    first, second = identifiers
    with (
        serving(str(tmp_path / "words.db")) as address,
        browsing(tmp_path, width=375, height=900) as tab,
    ):
        for path in ("/", f"/results/{first}", f"/compare/{first}/{second}"):
            tab.go(address + path)
            assert tab.run("document.documentElement.scrollWidth") <= 375, path
            if path == "/":
                widths = "Array.from(document.querySelectorAll('ul.list .what'), one => one.offsetWidth)"
                assert max(tab.run(widths)) < 375


@pytest.mark.everyday
def test_by_keyboard_alone(site: str, tmp_path: Path) -> None:
    """Skip to the content, search, tick two and compare them, and see the focus all the way."""
    with browsing(tmp_path, width=1000, height=900) as tab:
        tab.go(f"{site}/")
        tab.press("Tab")
        assert tab.run(ACTIVE) == "Skip to the content"
        tab.press("Enter")
        assert tab.run("document.activeElement.id") == "content"
        to(tab, "q")
        tab.type("Nightly")
        tab.follow(lambda: tab.press("Enter"))
        assert "q=Nightly" in tab.run("location.search")
        to(tab, "id")
        assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        tab.press(" ")
        tab.press("Tab")
        to(tab, "id")
        tab.press(" ")
        to(tab, "Compare the two ticked results")
        tab.follow(lambda: tab.press("Enter"))
        assert tab.run("location.pathname").startswith("/compare/")
        assert tab.run("document.querySelector('h1').textContent") == "Two results"
        assert quiet(tab) == []


def test_who_logged_in_logs_out_from_any_page(shown: Shown, paths: dict[str, str], tmp_path: Path) -> None:
    """A report has a policy of its own, under which a browser may send no form, or no origin with it."""
    token = tmp_path / "token"
    token.write_text("correct-horse-battery-staple\n", encoding="utf-8")
    with (
        serving(shown.store.where, "--token-file", str(token)) as address,
        browsing(tmp_path, width=1000, height=900) as tab,
    ):
        for name in ("experiments", "report"):
            tab.go(address + paths[name])
            to(tab, "token")
            tab.type("correct-horse-battery-staple")
            tab.follow(lambda: tab.press("Enter"))
            assert tab.run("location.pathname") == paths[name]
            to(tab, "Log out")
            tab.follow(lambda: tab.press("Enter"))
            assert tab.run("location.pathname") == "/login"
            assert tab.run("document.querySelector('[name=token]') !== null")


def to(tab: Tab, what: str) -> None:
    """By the tab key to what has this text, or this name."""
    for _ in range(400):
        if tab.run(ACTIVE) == what or tab.run("document.activeElement.name || ''") == what:
            return
        tab.press("Tab")
    raise AssertionError(f"{what!r} was not reached by the tab key")


def test_a_third_tick_takes_the_first_away(site: str, tmp_path: Path) -> None:
    with browsing(tmp_path, width=1000, height=900) as tab:
        tab.go(f"{site}/")
        for k in (0, 1, 2):
            tab.run(f"document.querySelectorAll('input[type=checkbox]')[{k}].click()")
        ticked = (
            "[...document.querySelectorAll('input[type=checkbox]')].map(one => one.checked).indexOf(true)"
        )
        assert tab.run(ticked) == 1


def test_sorting_goes_by_value_and_back(site: str, tmp_path: Path) -> None:
    dates = "[...document.querySelectorAll('tbody tr')].map(row => Number(row.cells[4].dataset.value))"
    with browsing(tmp_path, width=1000, height=900) as tab:
        tab.go(f"{site}/trends")
        named = "find(one => one.textContent.startsWith('Newest'))"
        when = f"[...document.querySelectorAll('th button')].{named}.click()"
        tab.run(when)
        up = tab.run(dates)
        tab.run(when)
        assert up == sorted(up)
        assert tab.run(dates) == sorted(up, reverse=True)


def test_hovering_over_a_mark_says_what_it_is(site: str, paths: dict[str, str], tmp_path: Path) -> None:
    with browsing(tmp_path, width=1200, height=1400) as tab:
        tab.go(site + paths["trend"])
        box = tab.run(
            "(() => { const box = document.querySelector('.wide [data-row=\"7\"]').getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        tab.point_at(*box)
        tab.wait("!document.querySelector('.tip').hidden")
        said = tab.run("document.querySelector('.tip').textContent")
        row = tab.run("document.querySelector('tr[data-row=\"7\"] a').textContent")
        near = tab.run("[...document.querySelectorAll('tr[data-row] a')].map(one => one.textContent)")
        assert any(said.startswith(name) for name in near), (said, row)
        tab.point_at(1, 1)
        tab.wait("document.querySelector('.tip').hidden")
        assert quiet(tab) == []


def test_a_running_experiment_is_followed_to_its_end(shown: Shown, site: str, tmp_path: Path) -> None:
    (newest,) = shown.store.search(Search(), limit=1).experiments
    with Journal(shown.store.where) as journal, browsing(tmp_path, width=1000, height=900) as tab:
        journal.experiment_started(12, 600.0)
        journal.stored_as(newest.id, "Runs now")
        running.write(shown.store.where, journal.now())
        tab.go(f"{site}/results/{newest.id}/live")
        journal.trial_started(4, "spring-tomcat", 0, 60)
        tab.wait("document.getElementById('progress').textContent.includes('spring-tomcat')")
        journal.finished()
        tab.arrive(f"/results/{newest.id}")
        assert tab.run("document.querySelector('#results') !== null")
        assert quiet(tab) == []


def test_without_scripts_everything_is_there(site: str, paths: dict[str, str], tmp_path: Path) -> None:
    with browsing(tmp_path, width=1000, height=900, scripts=False) as tab:
        tab.go(site + paths["trend"])
        html = tab.run("document.documentElement.outerHTML")
        assert 'data-row="0"' in html
        assert '<button class="sort"' not in html
        assert quiet(tab) == []
