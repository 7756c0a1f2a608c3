"""prony jmeter: XPath assertions of pages, beside JMeter 5.6.3."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from prony_frontends import jmeter
from tests.frontends.codes import refuses
from tests.frontends.conftest import quick_desk
from tests.frontends.jmx_text import document, element, flag, load_of, prop, repeated, sampler
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter
from tests.frontends.site import Response, site

PAGE = """<html><head><title> Shop </title></head><body><h1 class="big">Welcome to us</h1>
<FORM ACTION="/in"><input type=hidden name="token" value="t-1"></FORM>
<p>last <b>words</b></p></body></html>"""
TESTS = {
    "//form": True,
    "//table": False,
    "//input[@name='token']": True,
    "//input[@type='hidden']": True,
    "//input[@name='tok']": False,
    "//input[@name='token']/@value": True,
    "//input[@name='other']/@value": False,
    "//h1[text()='Welcome to us']": True,
    "//h1[text()='Welcome']": False,
    "//h1[contains(text(),'come to')]": True,
    "//p[contains(text(), 'words')]": False,
    '//title[text()="Shop"]': True,
}
"""Query -> whether it finds something in the page."""


def assertion(query: str, tidies: bool = True, inverse: bool = False) -> str:
    return element(
        "XPathAssertion", prop("XPath.xpath", query.replace('"', "&quot;")), flag("XPath.tolerant", tidies),
        flag("XPath.negate", inverse), flag("XPath.validate", False), flag("XPath.whitespace", False),
        flag("XPath.namespace", False),
    )  # fmt: skip


def plan(port: int, folder: Path) -> Path:
    """Each query twice, as it is and inverted."""
    pages = [
        sampler("/", prop("HTTPSampler.port", port), assertion(query, inverse=inverse), f"{place} {inverse}")
        for place, query in enumerate(TESTS)
        for inverse in (False, True)
    ]
    group = prop("ThreadGroup.num_threads", 1) + repeated(1)
    (folder / "p.jmx").write_bytes(document("".join(pages), group=group))
    return folder / "p.jmx"


def check(log: Path) -> None:
    with log.open(newline="") as file:
        rows = {row["label"]: row["success"] == "true" for row in csv.DictReader(file)}
    for place, (query, holds) in enumerate(TESTS.items()):
        assert (rows[f"{place} False"], rows[f"{place} True"]) == (holds, not holds), query


def test_a_query_holds_where_it_finds_something(tmp_path: Path) -> None:
    with site({"/": Response(PAGE)}) as served:
        jmeter.run(
            ["-n", "-t", str(plan(served.port, tmp_path)), "-l", str(tmp_path / "o.jtl")], quick_desk()[0]
        )
    check(tmp_path / "o.jtl")


@needs_jmeter
def test_jmeter_itself_holds_pages_to_them(tmp_path: Path) -> None:
    with site({"/": Response(PAGE)}) as served:
        run_jmeter(["-n", "-t", str(plan(served.port, tmp_path)), "-l", str(tmp_path / "o.jtl")], tmp_path)
    check(tmp_path / "o.jtl")


@pytest.mark.parametrize(
    "given",
    [
        assertion("/html/body/h1"), assertion("/a/b", tidies=False), assertion("count(//a) > 1"),
        assertion("//title"), assertion("//h1[text()='a &amp;lt; b']"),
    ],
)  # fmt: skip
def test_other_queries_are_refused(given: str) -> None:
    with refuses("unsupported", "XPath"):
        load_of(sampler(below=given))
