"""prony jmeter: what assertions look at in a response's head and JSON, what is taken from tags, and
conditions on it: held against JMeter itself.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from prony_frontends import jmeter, markup
from tests.frontends.codes import refuses
from tests.frontends.conftest import explained, quick_desk
from tests.frontends.jmx_text import (
    document,
    element,
    flag,
    load_of,
    prop,
    repeated,
    sampler,
    translated_of,
    variables,
)
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter
from tests.frontends.site import Response, site
from tests.frontends.test_jmeter_blocks import condition

MATCH, CONTAINS, NOT, EQUALS, SUBSTRING, OR = 1, 2, 4, 8, 16, 32
ONE = prop("ThreadGroup.num_threads", 1)
PAGE = """<html><head><META content="m3" name="m"></head><body><form class="f" action="/go">
<input type="hidden" name="csrf" value="tok-1"><input value='v2' id="two" name="other"/>
<input data-value="no" name=plain value="p4"></form></body></html>"""
RESPONSES = {
    "/page": Response(PAGE),
    "/json": Response('{"n": 12, "s": "12", "b": true}', "application/json"),
}


def response(field: str, rule: int, *texts: str) -> str:
    held = "".join(prop(str(place), text) for place, text in enumerate(texts))
    return element(
        "ResponseAssertion", f'<collectionProp name="Asserion.test_strings">{held}</collectionProp>',
        prop("Assertion.test_field", f"Assertion.{field}"), prop("Assertion.test_type", rule),
    )  # fmt: skip


def json_value(path: str, expected: str) -> str:
    return element(
        "JSONPathAssertion", prop("JSON_PATH", path), prop("EXPECTED_VALUE", expected),
        flag("JSONVALIDATION", True), flag("EXPECT_NULL", False), flag("INVERT", False),
        flag("ISREGEX", True),
    )  # fmt: skip


HEAD, MESSAGE = "response_headers", "response_message"
LOOK_AROUND: dict[str, tuple[str, bool]] = {
    "a header by a pattern": (response(HEAD, CONTAINS, "application/.son"), True),
    "a header that is not there": (response(HEAD, SUBSTRING | NOT, "X-None"), True),
    "a header that is there": (response(HEAD, SUBSTRING | NOT, "Content-Type"), False),
    "one of two": (response(HEAD, CONTAINS | OR, "X-No.e", "Content-T.pe"), True),
    "the line with the status": (response(HEAD, SUBSTRING, "HTTP/1.1 200"), True),
    "the message": (response(MESSAGE, EQUALS, "OK"), True),
    "not this message": (response(MESSAGE, EQUALS | NOT, "OK"), False),
    "a message by a pattern": (response(MESSAGE, MATCH, "N.*"), False),
    "a part of the message": (response(MESSAGE, SUBSTRING, "K"), True),
    "a number by a pattern": (json_value("$.n", r"\d+"), True),
    "a number as it is written": (json_value("$.n", "12"), True),
    "a text that is a number": (json_value("$.s", "12"), True),
    "a part of a number": (json_value("$.n", "1"), False),
    "true": (json_value("$.b", "true|false"), True),
}


def of_tags() -> str:
    def css(name: str, selector: str, attribute: str) -> str:
        return element(
            "HtmlExtractor", prop("HtmlExtractor.refname", name), prop("HtmlExtractor.expr", selector),
            prop("HtmlExtractor.attribute", attribute), prop("HtmlExtractor.match_number", 1),
        )  # fmt: skip

    def xpath(name: str, query: str) -> str:
        return element(
            "XPathExtractor", prop("XPathExtractor.refname", name), prop("XPathExtractor.xpathQuery", query),
            prop("XPathExtractor.default", "none"), flag("XPathExtractor.tolerant", True),
        )  # fmt: skip

    return (
        css("a", "input[name=csrf]", "value") + css("b", "#two", "value") + css("c", "form", "action")
        + css("d", "input[name='plain']", "value") + css("e", "meta[name=&quot;m&quot;]", "content")
        + xpath("f", "//input[@name='other']/@value") + xpath("g", "//form/@action")
        + xpath("h", "//input[@name='nobody']/@value")
    )  # fmt: skip


def groovy(text: str, path: str) -> str:
    escaped = text.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return condition(f"${{__groovy({escaped})}}", sampler(path))


CONDITIONS = {
    'vars.get("a") != null': True,
    'vars.get("nobody") == null': True,
    'vars.get("nobody") != null': False,
    'vars.get("a").startsWith("tok")': True,
    'vars.get("a").endsWith("x")': False,
    '"${b}".equalsIgnoreCase("V2")': True,
    '!vars.get("a").isEmpty()': True,
    'vars.get("a").matches("tok-[0-9]+")': True,
    'Integer.parseInt("${number}") > 3': True,
    '"${number}".toInteger() > 30': False,
}


def inside(port: int) -> str:
    looks = "".join(sampler("/json", below=below, name=name) for name, (below, _) in LOOK_AROUND.items())
    asks = "".join(groovy(text, f"/c{place}") for place, text in enumerate(CONDITIONS))
    port_of = element("ConfigTestElement", prop("HTTPSampler.port", port))
    page = sampler("/page", below=of_tags()) + sampler("/got/${a}/${b}${c}/${d}/${e}/${f}${g}/${h}")
    return port_of + variables(number="7") + looks + page + asks


def plan(port: int) -> bytes:
    return document(inside(port), group=ONE + repeated(1))


def check(paths: list[str], log: Path) -> None:
    with log.open(newline="") as file:
        rows = {row["label"]: row["success"] for row in csv.DictReader(file)}
    assert {name: rows[name] for name in LOOK_AROUND} == {
        name: str(right).lower() for name, (_, right) in LOOK_AROUND.items()
    }
    held = [place for place, holds in enumerate(CONDITIONS.values()) if holds]
    assert paths[len(LOOK_AROUND) :] == [
        "/page", "/got/tok-1/v2/go/p4/m3/v2/go/none", *(f"/c{place}" for place in held),
    ]  # fmt: skip


def test_what_is_seen_in_a_response(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        (tmp_path / "p.jmx").write_bytes(plan(served.port))
        argv = ["-n", "-t", str(tmp_path / "p.jmx"), "-l", str(tmp_path / "out.jtl")]
        jmeter.run(argv, quick_desk()[0])
        check(served.paths, tmp_path / "out.jtl")


@needs_jmeter
def test_jmeter_itself_sees_the_same(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        (tmp_path / "p.jmx").write_bytes(plan(served.port))
        run_jmeter(
            ["-n", "-t", str(tmp_path / "p.jmx"), "-l", str(tmp_path / "out.jtl")], tmp_path, cwd=tmp_path
        )
        check(served.paths, tmp_path / "out.jtl")


def test_such_plans_can_be_explained() -> None:
    made = translated_of(inside(80), group=ONE)
    assert explained(made).workload == made.trial.workload


@pytest.mark.parametrize(
    "text", ['vars.get("a").length() > 3', "null &lt; 3", 'vars.get("a").matches("(?=a)")']
)
def test_conditions_that_are_not_understood_are_refused(text: str) -> None:
    with refuses("unsupported", "IfController"):
        load_of(variables(a="1") + sampler() + groovy(text, "/x"))


@pytest.mark.parametrize(
    "selector", ["div > input", "a.x.y", "a[name^=x", "a[name^='']", "a[href][rel=x]", "", "input, form"]
)
def test_other_selectors_are_not_understood(selector: str) -> None:
    assert markup.css(selector, "value") is None
    assert markup.css("input", "") is None


@pytest.mark.parametrize("query", ["//a/text()", "//div/input/@value", "count(//a)", "//a[@b]/@c", "@x"])
def test_other_queries_are_not_understood(query: str) -> None:
    assert markup.xpath(query) is None


def test_a_fragment_of_xml_is_refused() -> None:
    strict = element(
        "XPathExtractor",
        prop("XPathExtractor.refname", "x"),
        prop("XPathExtractor.xpathQuery", "//a/@b"),
        flag("XPathExtractor.fragment", True),
    )
    with refuses("unsupported", "XPath"):
        load_of(sampler(below=strict))
