"""The page as text: structure, escaping, self-containment, size, colours, and writing it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from prony.compare.sentence import LATER
from prony.errors import PronyError
from prony.judge.finding import GRAVEST_FIRST, Kind
from prony.report.answer import answer, provided
from prony.report.blocks import KIND_WORDS
from prony.report.cell_view import TrialView
from prony.report.html import check_writable, render_html, write_html, write_text
from prony.report.html.page import conditions
from prony.report.html.theme import (
    ACCENTS,
    AT_WORST,
    BAND,
    INK,
    LINK,
    MUTED,
    PAPER,
    ROLES,
    SOURCES,
    WASH,
    Colour,
)
from prony.report.result import ResultView

from . import factory
from .page import Page, rendered

Make = Callable[[], ResultView]
EVERY: list[Make] = [
    factory.experiment,
    factory.four_troubled,
    factory.hopeless,
    factory.bare,
    factory.hostile,
    factory.without_engine,
    factory.foreign_load,
]
SECTIONS = [
    "results",
    "ratios",
    "latency",
    "throughput",
    "start-up",
    "cpu",
    "history",
    "findings",
    "trials",
    "host",
    "plan",
    "limits",
]


@pytest.fixture(scope="module")
def html() -> str:
    return rendered(factory.four_troubled)


def sections(page: Page) -> dict[str, str]:
    """Text by id, of those that have one."""
    return {e.attributes["id"]: e.text for e in page.all("section") if "id" in e.attributes}


def first_screen(page: Page) -> str:
    """What stands there before anything is unfolded."""
    parts = [
        e for e in page.elements if e.attributes.get("class") in ("answered", "foot") or e.tag == "header"
    ]
    return " ".join(e.text for e in parts)


def test_sections_come_in_the_order_of_a_reader(html: str) -> None:
    page = Page(html)
    assert list(sections(page)) == SECTIONS
    assert page.all("h1")[0].text == factory.TITLE


@pytest.mark.parametrize("make", EVERY)
def test_the_first_screen_is_the_answer_and_all_else_is_folded(make: Make) -> None:
    view, page = make(), Page(rendered(make))
    found = answer(view)
    shown = " ".join(first_screen(page).split())
    (part,) = found.parts
    claims = [half for sentence in part.sentences for half in sentence.split(LATER)]
    told = (*claims, part.failure, part.largest, found.conforming, *provided(found), *view.warnings)
    for text in told:
        assert " ".join(text.split()) in shown
    for row in part.rows.sections[0].rows if part.rows is not None else ():
        for cell in row.cells if row.cells[0].text != "no figure" else row.cells[:2]:
            assert cell.text in shown, row
    assert all("details" in e.inside for e in page.all("section") if e.attributes.get("id") is not None)
    outside = [e for e in page.all("table") if "details" not in e.inside]
    assert len(outside) == (1 if part.bars else 0)
    assert not [e for e in page.all("details") if "open" in e.attributes]


@pytest.mark.parametrize("make", [make for make in EVERY if make is not factory.hostile])
def test_no_brackets_within_brackets_on_the_first_screen(make: Make) -> None:
    depth = 0
    for letter in first_screen(Page(rendered(make))):
        depth += (letter in "([{") - (letter in ")]}")
        assert depth in (0, 1)


def test_charts_are_there_and_have_words(html: str) -> None:
    page = Page(html)
    charts = [e for e in page.all("svg") if e.attributes.get("role") == "img"]
    # Latency and CPU (each wide and narrow), twelve trials, six strips, five of history.
    assert len(charts) == 2 + 2 + 12 + 6 + 5
    titles = {e.attributes["id"]: e.text for e in page.all("title") if "id" in e.attributes}
    for chart in charts:
        assert len(titles[chart.attributes["aria-labelledby"]]) > 20
    assert "10,000 requests after" in titles["over-0-title"]
    assert "p99" in titles["latency-w-title"]


@pytest.mark.parametrize("make", EVERY)
def test_every_page_is_well_formed_and_complete_in_itself(make: Make) -> None:
    made = rendered(make)
    page = Page(made)
    assert page.faults == []
    ids = page.ids()
    assert len(ids) == len(set(ids))
    assert not re.search(r"https?://(?!127\.0\.0\.1)", made)
    assert page.all("script") == []
    assert page.all("img") == []
    assert [e.attributes["href"] for e in page.all("link")] == ["data:,"]
    assert "@import" not in made
    assert not re.search(r"url\((?!#)", made)
    for element in page.elements:
        assert not [name for name in element.attributes if name.startswith("on")]
        target = element.attributes.get("href", "#")
        assert target.startswith(("#", "data:,"))
        if target.startswith("#") and target != "#":
            assert target[1:] in ids
    (policy,) = [e for e in page.all("meta") if "http-equiv" in e.attributes]
    assert policy.attributes["content"].startswith("default-src 'none'")
    assert len(made.encode()) < 400_000


@pytest.mark.parametrize("make", EVERY)
def test_no_nan_reaches_the_page(make: Make) -> None:
    page = Page(rendered(make))
    body = page.all("body")[0].text
    assert not re.search(r"\b(nan|inf|None|undefined)\b", body)
    for element in page.elements:
        for name in ("d", "points", "transform", "x", "y", "x2", "y2", "width", "height", "viewBox"):
            assert not re.search("nan|infinity", element.attributes.get(name, ""), re.IGNORECASE)


def test_names_and_texts_are_escaped() -> None:
    made = rendered(factory.hostile)
    assert "<script" not in made
    assert "a<b>" not in made
    page = Page(made)
    assert page.all("h1")[0].text == factory.HOSTILE
    assert factory.HOSTILE in page.all("pre")[0].text
    assert any("a<b>&\"c'" in e.text for e in page.all("title"))


def test_tables_have_headers_and_scopes(html: str) -> None:
    page = Page(html)
    assert len(page.all("table")) >= 4
    assert all(e.attributes.get("scope") for e in page.all("th"))
    levels = [int(e.tag[1]) for e in page.elements if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_what_is_open_beyond_the_window_stands_below_the_claim() -> None:
    page = Page(rendered(factory.experiment))
    said = [e.text for e in page.all("p") if e.attributes.get("class") in ("said", "also")]
    claim, _, later = answer(factory.experiment()).sentence.partition(LATER)
    assert later
    assert said[0] == claim
    assert later in said[1]


def test_a_quick_run_is_marked_once_above_and_on_every_row_of_its_results_and_a_full_one_nowhere() -> None:
    quick = Page(rendered(factory.experiment))
    marks = [e for e in quick.elements if e.attributes.get("class") == "quick"]
    assert len([e for e in marks if "details" not in e.inside]) == 1
    rows = [e for e in quick.all("th") if e.attributes.get("scope") == "row" and "details" in e.inside]
    figures = rows[: next(n for n, e in enumerate(rows) if e.text.startswith("trials that conform")) + 1]
    assert len(figures) > 18
    assert all(e.text.endswith("quick") for e in figures)
    full = Page(render_html(factory.experiment(quick=False)))
    assert not [e for e in full.elements if e.attributes.get("class") == "quick"]


def test_trials_without_a_figure_stay_on_the_page_with_their_cause(html: str) -> None:
    trials = sections(Page(html))["trials"]
    assert trials.count(KIND_WORDS[Kind.NOT_CONFORMING]) == 2
    assert "exit code 137" in trials
    assert factory.FAILING.reason in trials


def test_an_experiment_in_which_nothing_conforms_shows_no_figure() -> None:
    page = Page(rendered(factory.hopeless))
    shown = sections(page)
    assert "no figure" in shown["results"]
    assert not re.search(r"\d,\d{3}", shown["results"].partition("Evidence")[0])
    assert not re.search(r"\d,\d{3}", first_screen(page).replace(factory.FAILING.reason, ""))
    assert "ratios" in shown
    assert "latency" not in shown
    assert "throughput" in shown


def test_checks_are_grouped_by_what_they_do(html: str) -> None:
    page = Page(html)
    badges = [
        e.attributes["class"] for e in page.all("span") if e.attributes.get("class", "").startswith("badge")
    ]
    kinds = [Kind(name.removeprefix("badge ")) for name in badges]
    assert kinds == sorted(kinds, key=GRAVEST_FIRST.index)
    assert set(kinds) == {Kind.NOT_CONFORMING, Kind.BUDGET, Kind.PROVIDED}


def test_what_all_of_it_rests_on_is_named(html: str) -> None:
    limits = sections(Page(html))["limits"]
    assert factory.BLIND.provided in limits
    for sentence in conditions(factory.four_troubled()):
        assert sentence in limits
    for words in ("closed loop of 10 users", "virtual machine (kvm)", "loopback"):
        assert words in limits


def test_the_exact_plan_and_the_host_are_there(html: str) -> None:
    page = Page(html)
    assert page.all("pre")[0].text == factory.four_troubled().plan_text
    host = sections(page)["host"]
    assert factory.FINGERPRINT.cpu_model in host
    assert factory.FINGERPRINT.key in host


def test_a_foreign_server_is_not_called_a_fresh_process() -> None:
    text = Page(rendered(factory.foreign_load)).all("body")[0].text
    assert "fresh server process" not in text
    assert "fresh server process" in Page(rendered(factory.experiment)).all("body")[0].text


def luminance(colour: str) -> float:
    channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


TEXT_COLOURS = [
    c for c in (*ROLES, *ACCENTS) if c.name in ("ink", "muted", "link", *Kind) or c.name.startswith("accent")
]


@pytest.mark.parametrize("colour", TEXT_COLOURS, ids=lambda c: c.name)
def test_colours_have_the_contrast_of_wcag_aa_in_light_and_dark(colour: Colour) -> None:
    assert contrast(colour.light, PAPER.light) >= 4.5
    assert contrast(colour.dark, PAPER.dark) >= 4.5


@pytest.mark.parametrize("colour", [*SOURCES, AT_WORST], ids=lambda c: c.name)
def test_bars_have_the_contrast_of_wcag_in_light_and_dark(colour: Colour) -> None:
    assert contrast(colour.light, PAPER.light) >= 3
    assert contrast(colour.dark, PAPER.dark) >= 3


def test_text_on_washes_is_legible() -> None:
    for back in (BAND, WASH):
        for front in (INK, MUTED, LINK):
            assert contrast(front.light, back.light) >= 4.5
            assert contrast(front.dark, back.dark) >= 4.5


def test_every_colour_of_a_chart_has_a_dark_twin(html: str) -> None:
    known = {c.light for c in (*ROLES, *SOURCES, *ACCENTS)}
    assert len(known) == len(ROLES) + len(SOURCES) + len(ACCENTS)
    used = set(re.findall(r'(?:fill|stroke)="(#[0-9a-fA-F]+)"', html))
    assert used
    assert used <= known
    assert not re.search(r'(?:fill|stroke)="(?!#|none|transparent|var)', html)


def test_writing_replaces_the_file_at_once(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    write_html(factory.without_engine(), target)
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_link_keeps_pointing_to_what_was_replaced(tmp_path: Path) -> None:
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to("real.html")
    write_text("new", tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_text("gone", Path("/dev/null"))
    assert not Path("/dev/null").is_file()


def test_unwritable_paths_get_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(PronyError, match=r"folder .*nowhere.* does not exist"):
        write_html(factory.without_engine(), tmp_path / "nowhere" / "report.html")
    with pytest.raises(PronyError, match="is a folder"):
        check_writable(tmp_path)
    with pytest.raises(PronyError, match=r"could not be written to .*; name another file"):
        write_text("x", tmp_path / ("n" * 300))
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(PronyError, match="no permission"):
            check_writable(tmp_path / "report.html")


def test_templates_are_imported_only_for_a_page() -> None:
    code = (
        "import sys, prony.report.terminal, prony.report.progress, prony.report.html, prony.report.export;"
        "sys.exit('jinja2' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_soak_of_hours_stays_small_and_counts_in_hours() -> None:
    made = factory.record("spring-tomcat")
    engine = made.evidence.engine
    assert engine is not None
    rows = tuple(
        engine.rows[-1].model_copy(update={"t_ms": 1000.0 * (n + 1), "completed": 8000 + n % 7})
        for n in range(8 * 3600)
    )
    evidence = made.evidence.model_copy(update={"engine": engine.model_copy(update={"rows": rows})})
    soak = factory.trial(made.model_copy(update={"evidence": evidence}))
    html = render_html(factory.experiment([soak], ["spring-tomcat"]))
    assert len(html) < 200_000
    assert ">2 h</text>" in html


def test_ten_servers_keep_marks_of_their_own() -> None:
    from prony.report.html.theme import accent, shape

    marks = [(accent(n).light, shape(n)) for n in range(16)]
    assert len(set(marks)) == 16


def test_a_published_run_by_an_engine_of_its_own_is_no_mark_in_the_load_that_follows() -> None:
    def apart(trial: TrialView) -> TrialView:
        evidence = trial.record.evidence
        assert evidence.engine is not None
        (mark,) = evidence.engine.marks
        engine = evidence.engine.model_copy(update={"marks": ()})
        evidence = evidence.model_copy(update={"published": mark, "engine": engine})
        return replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))

    view = factory.full()
    assert "Triangle" in render_html(view), "as results of earlier versions have it"
    assert "Triangle" not in render_html(factory.changed(view, apart))
