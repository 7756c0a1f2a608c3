"""Assertions into expectations, extractors into captures. Must not know requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from prony.frontends.jmeter.functions import Values
from prony.frontends.jmeter.jmx import Node
from prony.plan.workload import Capture, Expectation

ASSERTIONS = frozenset({"ResponseAssertion", "DurationAssertion", "SizeAssertion", "JSONPathAssertion"})
EXTRACTORS = frozenset({"RegexExtractor", "BoundaryExtractor", "JSONPostProcessor"})
FINAL = (200, 201, 202, 203, 204, 205, 206, 207, 208, 226)
REDIRECTS = (300, 301, 302, 303, 304, 305, 307, 308)
UNCHANGED = 304
"""What JMeter follows no redirect for."""
MATCH, CONTAINS, NOT, EQUALS, SUBSTRING, OR = 1, 2, 4, 8, 16, 32
PATTERN = re.compile(r"[\\.^$*+?{}\[\]()|]")
PATH = re.compile(r"\$((?:\.[A-Za-z_][\w-]*|\['[^'\\]*'\]|\[\d+\])*)")
STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^'\\]*)'\]|\[(\d+)\]")
JAVA_ONLY = re.compile(r"\(\?(?:=|!|<[=!]|>)|\\[1-9]|[*+?}]\+")
"""Look-around, atomic groups, back references and possessive repetitions."""


@dataclass(slots=True)
class _Expected:
    status: set[int]
    headers: dict[str, str] = field(default_factory=dict)
    equals: str | None = None
    contains: list[str] = field(default_factory=list)
    body_bytes: int | None = None
    values: dict[str, Any] = field(default_factory=dict)
    exists: list[str] = field(default_factory=list)


def expectation(assertions: Sequence[Node], follows: bool, values: Values) -> Expectation:
    """What a right answer of a sampler is: JMeter's own rule (a status below 400), and the assertions.

    `follows`: JMeter would go on after a redirect, so that one of them is no right answer here.
    """
    usual = {*FINAL, UNCHANGED} if follows else {*FINAL, *REDIRECTS}
    found = _Expected(usual)
    for assertion in assertions:
        _ADD[assertion.tag](assertion, found, values)
        assertion.finish()
    if not found.status:
        raise assertions[-1].refused(
            "no answer can be right with these statuses",
            "tick 'ignore status' where a status from 400 on is right",
        )
    return Expectation.model_validate(
        {
            "status": tuple(sorted(found.status)),
            "headers": found.headers,
            "body_equals": found.equals,
            "body_contains": tuple(found.contains),
            "body_bytes": found.body_bytes,
            "json": found.values,
            "json_exists": tuple(found.exists),
        }
    )


def _response(node: Node, found: _Expected, values: Values) -> None:
    where = node.value("Assertion.test_field", "Assertion.response_data")
    kind = values.whole(node.value("Assertion.test_type", "2"), node, "Assertion.test_type")
    assume = node.flag("Assertion.assume_success")
    node.ignore("Assertion.custom_message")
    if node.value("Assertion.scope") not in ("", "parent"):
        raise node.refused("it applies to sub-samples", "let it apply to the main sample")
    texts = [values.constant(entry.text, node) for entry in node.members("Asserion.test_strings")]
    if not texts:
        raise node.wrong("at least one pattern")
    if kind & NOT:
        raise node.refused("the rule Not", "say what a right answer holds")
    rule = kind & (MATCH | CONTAINS | EQUALS | SUBSTRING)
    if rule in (MATCH, CONTAINS) and not any(PATTERN.search(text) for text in texts):
        rule = SUBSTRING if rule == CONTAINS else EQUALS
    if where == "Assertion.response_code":
        _status(node, texts, rule, assume, bool(kind & OR), found)
        return
    if rule not in (EQUALS, SUBSTRING):
        raise node.refused(
            "a pattern in a rule Contains or Matches", "use the rule Substring or Equals with a plain text"
        )
    if kind & OR and len(texts) > 1:
        raise node.refused(
            "patterns of which one is enough (Or)", "say one text that every right answer holds"
        )
    if where in ("Assertion.response_data", "Assertion.response_data_as_document") and where.endswith("data"):
        if rule == SUBSTRING:
            found.contains += texts
        elif len(texts) == 1:
            found.equals = texts[0]
        else:
            raise node.refused("several texts that the body must equal", "keep one of them")
    elif where == "Assertion.response_headers" and rule == SUBSTRING:
        for text in texts:
            name, colon, value = text.partition(":")
            if not colon or not name.strip():
                raise node.refused(f"'{text}' in the headers", "write NAME: VALUE")
            found.headers[name.strip()] = value.strip()
    else:
        raise node.refused(
            f"the field {where.removeprefix('Assertion.')}",
            "test the text response, the response code or the response headers",
        )
    if assume:
        raise node.refused("'ignore status' beside a test of the content", "test the response code with it")


def _status(node: Node, texts: list[str], rule: int, assume: bool, any_of: bool, found: _Expected) -> None:
    allowed = set(range(100, 600))
    if rule == EQUALS:
        codes = []
        for text in texts:
            if not re.fullmatch(r"[1-5]\d\d", text.strip()):
                raise node.wrong(f"a status of three digits, found '{text}'")
            codes.append(int(text))
        named = [{code} for code in codes]
    elif rule == SUBSTRING:
        named = [{code for code in allowed if text in str(code)} for text in texts]
    elif all(re.fullmatch(r"[0-9.|()\[\]\\d?:-]+", text) for text in texts):
        test = re.search if rule == CONTAINS else re.fullmatch
        try:
            named = [{code for code in allowed if test(text, str(code))} for text in texts]
        except re.error as fault:
            raise node.wrong(f"a pattern for the status; {fault}") from fault
    else:
        raise node.refused(
            f"the pattern '{texts[0]}' for the status", "name the statuses, such as 200 or 20[01]"
        )
    right = set.union(*named) if any_of else set.intersection(*named)
    found.status = right if assume else found.status & right


def _duration(node: Node, _found: _Expected, _values: Values) -> None:
    raise node.refused(
        "an answer that is right but late is no error here, it is in the percentiles",
        "set the sampler's response timeout, or ask for a percentile in a Prony plan",
    )


def _size(node: Node, found: _Expected, values: Values) -> None:
    where = node.value("Assertion.test_field")
    size = values.whole(node.value("SizeAssertion.size"), node, "SizeAssertion.size")
    operator = values.whole(node.value("SizeAssertion.operator", "1"), node, "SizeAssertion.operator")
    if where != "SizeAssertion.response_data" or operator != 1:
        raise node.refused(
            "a size other than that of the body, equal to a number", "test the response body, ="
        )
    found.body_bytes = size


def _json(node: Node, found: _Expected, values: Values) -> None:
    pointer = json_pointer(values.constant(node.value("JSON_PATH"), node), node)
    compares = node.flag("JSONVALIDATION")
    expected = values.constant(node.value("EXPECTED_VALUE"), node)
    pattern = node.flag("ISREGEX", True)
    if node.flag("INVERT"):
        raise node.refused("'Invert assertion'", "say what a right answer holds")
    null = node.flag("EXPECT_NULL")
    if not compares:
        found.exists.append(pointer)
        return
    if null:
        found.values[pointer] = None
        return
    try:
        value: Any = json.loads(expected)
    except ValueError:
        value = expected
    if pattern and (PATTERN.search(expected) or not isinstance(value, str)):
        raise node.refused(
            f"'{expected}' as a regular expression",
            "untick 'Match as regular expression'; the value is then compared",
        )
    found.values[pointer] = value


_ADD = {
    "ResponseAssertion": _response,
    "DurationAssertion": _duration,
    "SizeAssertion": _size,
    "JSONPathAssertion": _json,
}


def json_pointer(path: str, node: Node) -> str:
    """A definite JSONPath (names and indexes) as a pointer of RFC 6901. Raises Refused for others."""
    match = PATH.fullmatch(path.strip())
    if match is None:
        raise node.refused(
            f"the JSON path '{path}' may find several places", "name one place, such as $.items[0].id"
        )
    tokens = (name or quoted or index for name, quoted, index in STEP.findall(match.group(1)))
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def names(node: Node) -> list[str]:
    """The variables that an extractor gives values to."""
    match node.tag:
        case "JSONPostProcessor":
            return [name.strip() for name in node.value("JSONPostProcessor.referenceNames").split(";")]
        case _:
            return [node.value(f"{node.tag}.refname")]


def captures(extractors: Sequence[Node], values: Values) -> dict[str, Capture]:
    """What later requests may use; the variables are known from here on."""
    found: dict[str, Capture] = {}
    for node in extractors:
        for variable, capture in _EXTRACT[node.tag](node, values):
            name = values.changing(variable, node)
            if name in found:
                raise node.wrong(f"a variable name of its own, found '{variable}'")
            if capture.default is None:
                values.note(
                    f"{node.element}: where nothing is found, an error is counted "
                    "(JMeter says so in its log only)"
                )
            found[name] = capture
        node.finish()
    return found


def _default(node: Node, values: Values, name: str, empty: str) -> str | None:
    raw = node.value(name)
    wants_empty = node.flag(empty) if empty else False
    return values.constant(raw, node) if raw else ("" if wants_empty else None)


def _first_only(node: Node, values: Values, number: str) -> None:
    if values.whole(number, node, "the match number", 1) != 1:
        raise node.refused(f"match {number}", "take match 1: the first is what Prony captures")


def _regex(node: Node, values: Values) -> Iterator[tuple[str, Capture]]:
    text = values.constant(node.value("RegexExtractor.regex"), node)
    template = node.value("RegexExtractor.template", "$1$") or "$1$"
    group = re.fullmatch(r"\$(\d+)\$", template)
    _first_only(node, values, node.value("RegexExtractor.match_number", "1"))
    source = node.value("RegexExtractor.useHeaders", "false")
    if source not in ("false", "", "unescaped"):
        raise node.refused("it looks elsewhere than in the body", "let it look in the body")
    if node.value("Sample.scope") not in ("", "parent"):
        raise node.refused("it applies to sub-samples or a variable", "let it apply to the main sample")
    if group is None:
        raise node.refused(f"the template '{template}'", "use a template of one group, such as $1$")
    if JAVA_ONLY.search(text):
        raise node.refused(f"the pattern '{text}'", "use one without look-around and back references")
    default = _default(node, values, "RegexExtractor.default", "RegexExtractor.default_empty_value")
    yield (
        node.value("RegexExtractor.refname"),
        Capture(regex=text, group=int(group.group(1)), default=default),
    )


def _boundary(node: Node, values: Values) -> Iterator[tuple[str, Capture]]:
    left = values.constant(node.value("BoundaryExtractor.lboundary"), node)
    right = values.constant(node.value("BoundaryExtractor.rboundary"), node)
    _first_only(node, values, node.value("BoundaryExtractor.match_number", "1"))
    if node.value("BoundaryExtractor.useHeaders", "false") not in ("false", "", "unescaped"):
        raise node.refused("it looks elsewhere than in the body", "let it look in the body")
    if node.value("Sample.scope") not in ("", "parent"):
        raise node.refused("it applies to sub-samples or a variable", "let it apply to the main sample")
    default = _default(node, values, "BoundaryExtractor.default", "BoundaryExtractor.default_empty_value")
    pattern = f"(?s){re.escape(left)}(.*?){re.escape(right) if right else '$'}"
    yield node.value("BoundaryExtractor.refname"), Capture(regex=pattern, group=1, default=default)


def _json_extractor(node: Node, values: Values) -> Iterator[tuple[str, Capture]]:
    names = node.value("JSONPostProcessor.referenceNames").split(";")
    paths = node.value("JSONPostProcessor.jsonPathExprs").split(";")
    numbers = node.value("JSONPostProcessor.match_numbers").split(";")
    defaults = node.value("JSONPostProcessor.defaultValues").split(";")
    if node.flag("JSONPostProcessor.compute_concat"):
        raise node.refused("'Compute concatenation var'", "untick it")
    if node.value("Sample.scope") not in ("", "parent"):
        raise node.refused("it applies to sub-samples or a variable", "let it apply to the main sample")
    if len(names) != len(paths):
        raise node.wrong(f"as many paths as names, found {len(paths)} and {len(names)}")
    for index, (name, path) in enumerate(zip(names, paths, strict=True)):
        number = numbers[index] if index < len(numbers) else ""
        _first_only(node, values, number or "1")
        default = defaults[index] if index < len(defaults) and defaults[index] else None
        pointer = json_pointer(values.constant(path, node), node)
        yield name.strip(), Capture.model_validate({"json": pointer, "default": default})


_EXTRACT = {"RegexExtractor": _regex, "BoundaryExtractor": _boundary, "JSONPostProcessor": _json_extractor}
