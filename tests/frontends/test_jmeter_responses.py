"""prony jmeter: assertions become expectations, extractors become captures, and mean what they mean there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prony.errors import UsageError
from tests.frontends.conftest import Served, offered
from tests.frontends.jmx_text import document, element, flag, load_of, posted, prop, repeated, sampler
from tests.frontends.real_jmeter import needs_jmeter
from tests.frontends.test_jmeter_blocks import by_jmeter, read, targets

CONTAINS, MATCH, EQUALS, SUBSTRING, NOT, OR = 2, 1, 8, 16, 4, 32


def response(kind: int, *texts: str, field: str = "response_data", assume: bool = False) -> str:
    strings = "".join(prop(str(index), text) for index, text in enumerate(texts))
    return element(
        "ResponseAssertion", f'<collectionProp name="Asserion.test_strings">{strings}</collectionProp>',
        prop("Assertion.test_field", f"Assertion.{field}"), prop("Assertion.test_type", kind),
        flag("Assertion.assume_success", assume),
    )  # fmt: skip


def size(operator: int, number: int) -> str:
    return element(
        "SizeAssertion", prop("Assertion.test_field", "SizeAssertion.response_data"),
        prop("SizeAssertion.size", number), prop("SizeAssertion.operator", operator),
    )  # fmt: skip


def json_path(path: str, *more: str) -> str:
    return element("JSONPathAssertion", prop("JSON_PATH", path), *more)


def step_of(below: str) -> Any:
    (step,) = load_of(sampler(below=below)).workload.all_steps
    return step


CODE, HEAD = "response_code", "response_headers"
ASSERTED: dict[str, tuple[str, dict[str, object]]] = {
    "substring": (response(SUBSTRING, "a.b", "c"), {"body_contains": ("a.b", "c")}),
    "no substring": (response(SUBSTRING | NOT, "a", "b"), {"body_not_contains": ("a", "b")}),
    "one of": (response(SUBSTRING | OR, "a.", "b"), {"body_matches": (r"a\.|b",)}),
    "pattern": (response(CONTAINS, "a.c", "^x"), {"body_matches": ("a.c", "^x")}),
    "no pattern": (response(CONTAINS | NOT, "a.c"), {"body_not_matches": ("a.c",)}),
    "plain pattern": (response(CONTAINS, "abc"), {"body_contains": ("abc",)}),
    "matches": (response(MATCH, "a.c"), {"body_matches": ("^(?:a.c)$",)}),
    "equals": (response(EQUALS, "a"), {"body_equals": "a"}),
    "equals not": (response(EQUALS | NOT, "a"), {"body_not_equals": "a"}),
    "equals one of": (response(EQUALS | OR, "a", "b+"), {"body_matches": (r"^(?:a|b\+)$",)}),
    "any status": (response(SUBSTRING, "a", assume=True), {"status": (), "body_contains": ("a",)}),
    "not this status": (response(EQUALS | NOT, "200", field=CODE), {"not": 200}),
    "only this status": (response(EQUALS, "404", field=CODE, assume=True), {"status": (404,)}),
    "duration": (element("DurationAssertion", prop("DurationAssertion.duration", 250)), {"max_ms": 250}),
    "size": (size(1, 5), {"body_bytes": 5, "min_bytes": None, "max_bytes": None}),
    "more than": (size(3, 5), {"min_bytes": 6, "max_bytes": None}),
    "between": (size(5, 5) + size(4, 9), {"min_bytes": 5, "max_bytes": 8}),
    "absent": (json_path("$.a", flag("INVERT", True)), {"json_absent": ("/a",)}),
    "a number by its digits": (
        json_path("$.a", flag("JSONVALIDATION", True), prop("EXPECTED_VALUE", "12"), flag("ISREGEX", True)),
        {"json_matches": {"/a": "^(?:12)$"}},
    ),
    "a header": (
        response(SUBSTRING, "X-Kind: a", field=HEAD),
        {"headers": {"X-Kind": "a"}, "head_matches": ()},
    ),
    "a part of a header": (response(CONTAINS, "j.on", field=HEAD), {"head_matches": ("(?R:j.on)",)}),
    "no such header": (response(SUBSTRING | NOT, "a:b", field=HEAD), {"head_not_matches": ("a:b",)}),
    "message": (
        response(EQUALS, "OK", field="response_message"),
        {"head_matches": (r"^HTTP/\S+ \d{3} ?(?:OK)\r?\n[\s\S]*$",)},
    ),
    "null": (
        json_path("$.a", flag("JSONVALIDATION", True), flag("EXPECT_NULL", True)),
        {"json_values": {"/a": None}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ASSERTED)
def test_assertions(case: str) -> None:
    below, expected = ASSERTED[case]
    expect = step_of(below).expect
    if "not" in expected:
        assert 200 not in expect.status
        assert 201 in expect.status
        return
    assert {name: getattr(expect, name) for name in expected} == expected


@pytest.mark.parametrize(
    "below",
    [
        response(SUBSTRING | NOT | OR, "a", "b"),
        response(CONTAINS, "a(?=b)"),
        response(SUBSTRING, "a", field="request_headers"),
        response(SUBSTRING | NOT | OR, "a: b", "c", field="response_headers"),
        response(CONTAINS, "(?=a)", field="response_message"),
        json_path(
            "$.a", flag("JSONVALIDATION", True), prop("EXPECTED_VALUE", "(?=a)"), flag("ISREGEX", True)
        ),
        size(2, 5),
        size(1, 5) + size(3, 5),
        json_path("$..a", flag("INVERT", True)),
        json_path("$.a", flag("INVERT", True), flag("JSONVALIDATION", True)),
        element("DurationAssertion", prop("DurationAssertion.duration", -1)),
    ],
)
def test_what_cannot_be_expected_is_refused(below: str) -> None:
    with pytest.raises(UsageError, match=r"^p\.jmx:\d+: "):
        step_of(below)


def regex(name: str, pattern: str, *more: str) -> str:
    return element(
        "RegexExtractor", prop("RegexExtractor.refname", name), prop("RegexExtractor.regex", pattern),
        prop("RegexExtractor.template", "$1$"), *more,
    )  # fmt: skip


def boundary(name: str, match: int, *more: str) -> str:
    return element(
        "BoundaryExtractor", prop("BoundaryExtractor.refname", name),
        prop("BoundaryExtractor.lboundary", "["), prop("BoundaryExtractor.rboundary", "]"),
        prop("BoundaryExtractor.match_number", match), *more,
    )  # fmt: skip


def jsons(names: str, paths: str, numbers: str = "", defaults: str = "") -> str:
    return element(
        "JSONPostProcessor", prop("JSONPostProcessor.referenceNames", names),
        prop("JSONPostProcessor.jsonPathExprs", paths), prop("JSONPostProcessor.match_numbers", numbers),
        prop("JSONPostProcessor.defaultValues", defaults),
    )  # fmt: skip


NUMBER = "RegexExtractor.match_number"
RESERVED: dict[str, tuple[str, dict[str, dict[str, object]]]] = {
    "first": (regex("x", "(a)", prop(NUMBER, 1)), {"x": {"regex": "(a)", "group": 1, "optional": True}}),
    "any": (regex("x", "(a)"), {"x": {"regex": "(a)", "group": 1, "match": 0, "optional": True}}),
    "head": (
        regex("x", "(a)", prop(NUMBER, 2), prop("RegexExtractor.useHeaders", "true"),
              prop("RegexExtractor.default", "no")),
        {"x": {"regex": "(?R:(a))", "group": 1, "match": 2, "in": "head", "default": "no"}},
    ),
    "boundary": (
        boundary("x", -1), {"x": {"boundary": {"left": "[", "right": "]"}, "match": -1, "optional": True}}
    ),
    "place": (jsons("x", "$.a[0]['b']"), {"x": {"json": "/a/0/b", "default": ""}}),
    "paths": (
        jsons("x;y", "$..a;$.b[*].c", "2;-1", "no;none"),
        {"x": {"jsonpath": "$..a", "match": 2, "default": "no"},
         "y": {"jsonpath": "$.b[*].c", "match": -1, "default": "none"}},
    ),
    "taken name": (jsons("user", "$.a"), {"user_": {"json": "/a", "default": ""}}),
}  # fmt: skip


@pytest.mark.parametrize("case", RESERVED)
def test_extractors(case: str) -> None:
    below, expected = RESERVED[case]
    found = step_of(below).capture
    shown = {name: one.model_dump(by_alias=True, exclude_defaults=True) for name, one in found.items()}
    assert shown == {name: {**keys, "always": True} for name, keys in expected.items()}


@pytest.mark.parametrize(
    "below",
    [
        regex("x", "(a", prop(NUMBER, 1)),
        regex("x", "a", prop(NUMBER, 1)),
        regex("x", r"(a)\1", prop(NUMBER, 1)),
        regex("x", "(a)", prop("RegexExtractor.useHeaders", "code")),
        regex("", "(a)"),
        jsons("x;y", "$.a", "", ";"),
        jsons("x;y", "$.a;$.b", "", ""),
        jsons("x", "$.a.length()"),
        jsons("x", "$.a[?(@.b =~ /c/)]"),
    ],
)
def test_what_cannot_be_taken_is_refused(below: str) -> None:
    with pytest.raises(UsageError, match=r"^p\.jmx:\d+: "):
        step_of(below)


def values(port: int) -> bytes:
    """Two requests whose responses are known, each before one that says what was taken from it."""
    none = prop("BoundaryExtractor.default", "no")
    kind = regex("kind", "(?i)content-length: (.)", prop("RegexExtractor.useHeaders", "true"))
    taken = boundary("second", 2) + boundary("all", -1) + boundary("none", 9, none) + kind
    paths = jsons("p;q;r;m", "$.a[0].b;$..b;$.z;$.a[*].b", "1;2;1;-1", "d1;d2;d3;d4")
    inside = (
        element("ConfigTestElement", prop("HTTPSampler.port", port)),
        posted("/echo", "[a][b-c][d]", taken + regex("kept", "(nothing)", prop(NUMBER, 1))),
        sampler("/${second}/${all_1}-${all_3}/${all_matchNr}/${none}/${kind}"),
        posted("/echo?json", '{"a":[{"b":1},{"b":"x"}],"n":null}', paths),
        sampler("/${p}/${q}/${r}/${m_2}/${m_matchNr}"),
    )
    return document("".join(inside), group=repeated(2) + prop("ThreadGroup.num_threads", 1))


VALUES = ["/echo", "/b-c/a-d/3/no/1", "/echo?json", "/1/x/d3/x/2"] * 2


def test_values_are_those_of_the_response(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    report = offered(read(values(server.port), tmp_path))
    assert report.totals.errors == {}
    assert targets(server) == VALUES


@needs_jmeter
def test_jmeter_itself_takes_the_same(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    by_jmeter(values(server.port), tmp_path)
    assert targets(server) == VALUES


def test_redirects_are_followed_where_the_sampler_says_so() -> None:
    follows = load_of(sampler(more=flag("HTTPSampler.follow_redirects", True))).workload.all_steps[0]
    assert follows.follow_redirects == 20
    assert follows.expect is not None
    assert 302 not in follows.expect.status
    plain = load_of(sampler(more=flag("HTTPSampler.follow_redirects", False))).workload.all_steps[0]
    assert plain.follow_redirects == 0
    assert plain.expect is not None
    assert 302 in plain.expect.status
