"""prony jmeter: XPath extractors and assertions of XML, and texts of tidied pages, beside JMeter 5.6.3."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from prony_frontends import jmeter
from tests.frontends.codes import refuses
from tests.frontends.conftest import quick_desk
from tests.frontends.jmx_text import document, element, flag, load_of, prop, repeated, sampler, translated_of
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter
from tests.frontends.site import Response, site

XML = """<?xml version="1.0"?>
<shop xmlns:s="urn:x"><order id="o-1"> first </order><order id="o-2">second</order><none/><total>5</total>
<s:token>t-9</s:token><title>T</title><gone a="1"/>tail</shop>"""
PAGE = """<html><head><title> Shop </title></head><body><h1 class="big">Welcome to us</h1>
<p>one <b>two</b></p><P ID="q">three</P></body></html>"""
NEWER, OLDER, TIDY = "XPath2", "XPath", "Tidy"
FOUND = {
    (OLDER, "//order/text()"): " first ",
    (NEWER, "//order/text()"): " first ",
    (OLDER, "//total"): "5",
    (NEWER, "//total"): "5",
    (NEWER, "//none"): "",
    (OLDER, "//none/text()"): "no",
    (OLDER, "//order[@id='o-2']"): "second",
    (NEWER, "//order[@id='o-2']/text()"): "second",
    (OLDER, "//order/@id"): "o-1",
    (NEWER, "//order/@id"): "o-1",
    (OLDER, "//*[local-name()='token']"): "t-9",
    (NEWER, "//*[local-name()='token']/text()"): "t-9",
    (NEWER, "//gone/text()"): "no",
    (TIDY, "//h1/text()"): "Welcome to us",
    (TIDY, "//title/text()"): "Shop",
    (TIDY, "//p"): "one ",
    (TIDY, "//p[@id='q']/text()"): "three",
}
"""Kind and query -> what the extractor finds, as JMeter 5.6.3 has it."""
HOLD = {
    (OLDER, "//total"): True,
    (NEWER, "//total"): True,
    (NEWER, "//TOTAL"): False,
    (OLDER, "//title"): True,
    (OLDER, "//order[@id='o-2']"): True,
    (NEWER, "//total[text()='5']"): True,
    (NEWER, "//total[text()='6']"): False,
    (OLDER, "//*[local-name()='token']"): True,
    (NEWER, "//*[local-name()='other']"): False,
}
"""Kind and query -> whether the assertion holds."""


def extractor(kind: str, query: str) -> str:
    tag, begins = ("XPath2Extractor", "XPathExtractor2") if kind == NEWER else ("XPathExtractor",) * 2
    return element(
        tag,
        prop(f"{begins}.refname", "v"),
        prop(f"{begins}.xpathQuery", query),
        prop(f"{begins}.default", "no"),
        prop(f"{begins}.matchNumber", 1),
        flag(f"{begins}.tolerant", kind == TIDY),
        flag(f"{begins}.fragment", False),
    )


def assertion(kind: str, query: str) -> str:
    return element(
        f"{kind}Assertion", prop("XPath.xpath", query), flag("XPath.negate", False),
        flag("XPath.tolerant", False),
    )  # fmt: skip


def plan(port: int, folder: Path) -> Path:
    at = prop("HTTPSampler.port", port)
    header = (
        '<collectionProp name="HeaderManager.headers"><elementProp name="" elementType="Header">'
        f"{prop('Header.name', 'X-V')}{prop('Header.value', '[${v}]')}</elementProp></collectionProp>"
    )
    pages = [
        sampler("/page" if kind == TIDY else "/xml", at, extractor(kind, query))
        + sampler("/sent", at, element("HeaderManager", header))
        for kind, query in FOUND
    ]
    pages += [sampler("/xml", at, assertion(kind, query), f"{kind} {query}") for kind, query in HOLD]
    group = prop("ThreadGroup.num_threads", 1) + repeated(1)
    (folder / "p.jmx").write_bytes(document("".join(pages), group=group))
    return folder / "p.jmx"


def check(sent: list[str], log: Path) -> None:
    assert sent == list(FOUND.values())
    with log.open(newline="") as file:
        rows = {row["label"]: row["success"] == "true" for row in csv.DictReader(file)}
    assert {(kind, query): rows[f"{kind} {query}"] for kind, query in HOLD} == HOLD


RESPONSES = {"/xml": Response(XML, "text/xml"), "/page": Response(PAGE), "/sent": Response()}


def sent(heads: list[tuple[str, ...]]) -> list[str]:
    """What the requests carry in a header, in their order."""
    found = (re.search(r"X-V: \[(.*)\]", "\n".join(head)) for head in heads)
    return [match.group(1) for match in found if match]


def test_what_queries_find_in_xml_and_in_pages(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        argv = ["-n", "-t", str(plan(served.port, tmp_path)), "-l", str(tmp_path / "o.jtl")]
        assert jmeter.run(argv, quick_desk()[0]) == 0
    check(sent(served.heads), tmp_path / "o.jtl")


@needs_jmeter
def test_jmeter_itself_finds_the_same(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        run_jmeter(["-n", "-t", str(plan(served.port, tmp_path)), "-l", str(tmp_path / "o.jtl")], tmp_path)
    check(sent(served.heads), tmp_path / "o.jtl")


def test_a_note_says_what_is_taken_for_granted() -> None:
    below = extractor(NEWER, "//total") + assertion(NEWER, "//total")
    notes = translated_of(sampler(below=below)).notes
    assert [note.code for note in notes].count("well_formed_xml") == 2


@pytest.mark.parametrize(
    "query", ["/shop/order", "//s:token", "count(//order)", "//order[2]", "//order/@id | //a"]
)
@pytest.mark.parametrize("kind", [OLDER, NEWER])
def test_other_queries_are_refused(kind: str, query: str) -> None:
    for below in (extractor(kind, query), assertion(kind, query)):
        with refuses("unsupported", "XPath"):
            load_of(sampler(below=below))
