"""Assertions into expectations, extractors into captures."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from prony.plan.response import Expectation
from prony_frontends import markup
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.patterns import NotTaken, Pattern, pattern

ASSERTIONS = frozenset(
    {
        "ResponseAssertion",
        "DurationAssertion",
        "SizeAssertion",
        "JSONPathAssertion",
        "XPathAssertion",
        "XPath2Assertion",
    }
)
OF_TIDY = tuple(f"XPath.{name}" for name in (
    "validate", "quiet", "whitespace", "namespace", "report_errors", "show_warnings", "download_dtd",
    "download_dtds", "namespaces",
))  # fmt: skip
"""Properties of an XPathAssertion that change nothing of what a query finds in a page."""
SUCCESS, REDIRECTS = range(200, 300), range(300, 400)
NOT_FOLLOWED = (300, 304, 305)
EVERY = range(100, 600)
MATCH, CONTAINS, NOT, EQUALS, SUBSTRING, OR = 1, 2, 4, 8, 16, 32
PATTERN = re.compile(r"[\\.^$*+?{}\[\]()|]")
PATH = re.compile(r"\$((?:\.[A-Za-z_][\w-]*|\['[^'\\]*'\]|\[\d+\])*)")
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\r\n]*)")
STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^'\\]*)'\]|\[(\d+)\]")
OF_REQUEST = frozenset({"parent", "all"})
"""Scopes of the assertions that a request is held to which embeds nothing,"""
OF_PAGE = OF_REQUEST | {"children"}
"""a page, which JMeter has among its sub-samples,"""
OF_EMBEDDED = frozenset({"all", "children"})
"""and what is fetched for a page."""


@dataclass(slots=True)
class _Expected:
    status: set[int]
    scopes: frozenset[str] = OF_REQUEST
    """Of the assertions that count."""
    headers: dict[str, str] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    """`body_contains` and its like."""
    equals: dict[str, str] = field(default_factory=dict)
    least_bytes: int = 0
    most_bytes: int | None = None
    max_ms: int | None = None
    values: dict[str, Any] = field(default_factory=dict)
    matches: dict[str, str] = field(default_factory=dict)
    """JSON pointer -> a regex of the whole value as a text."""
    exists: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    def add(self, key: str, *texts: str) -> None:
        self.texts.setdefault(key, []).extend(texts)

    def bytes(self, node: JmxNode, least: int = 0, most: int | None = None) -> None:
        """Bounds of the body, and those that there are."""
        self.least_bytes = max(self.least_bytes, least)
        if most is not None:
            self.most_bytes = most if self.most_bytes is None else min(most, self.most_bytes)
        if self.most_bytes is not None and self.most_bytes < self.least_bytes:
            raise node.wrong("sizes that a body can have, all assertions together")


def expectation(
    assertions: Sequence[JmxNode], follows: bool, values: KnownValues, scopes: frozenset[str] = OF_REQUEST
) -> Expectation:
    """What a right response of a sampler is: JMeter's own rule (a status below 400), and the assertions of
    these scopes.

    `follows`: redirects are followed, so that one of them is not the last response.
    """
    usual = {*SUCCESS, *(NOT_FOLLOWED if follows else REDIRECTS)}
    found = _Expected(usual, scopes)
    for assertion in assertions:
        _ADD[assertion.tag](assertion, found, values)
        assertion.finish()
    if not found.status:
        raise assertions[-1].refused(
            "no response can be right with these statuses",
            "tick 'ignore status' where a status from 400 on is right",
        )
    least, most = found.least_bytes, found.most_bytes
    return Expectation.model_validate(
        {
            "status": () if found.status >= set(EVERY) else tuple(sorted(found.status)),
            "headers": found.headers,
            **{key: tuple(texts) for key, texts in found.texts.items()},
            **found.equals,
            "body_bytes": least if least == most else None,
            "min_bytes": least if least and least != most else None,
            "max_bytes": most if least != most else None,
            "max_ms": found.max_ms,
            "json": found.values,
            "json_matches": found.matches,
            "json_exists": tuple(found.exists),
            "json_absent": tuple(found.absent),
        }
    )


def looks_within(assertions: Sequence[JmxNode]) -> bool:
    """Whether one of them looks at sub-samples."""
    scoped = (assertion for assertion in assertions if assertion.tag != "JSONPathAssertion")
    return any(assertion.value("Assertion.scope") in OF_EMBEDDED for assertion in scoped)


def _response(node: JmxNode, found: _Expected, values: KnownValues) -> None:
    where = node.value("Assertion.test_field", "Assertion.response_data")
    kind = values.whole(node.value("Assertion.test_type", "2"), node, "Assertion.test_type")
    assume = node.flag("Assertion.assume_success")
    node.ignore("Assertion.custom_message")
    if _passed_over(node, found, values):
        return
    texts = [values.constant(entry.text, node) for entry in node.members("Asserion.test_strings")]
    if not texts:  # nothing is asked for, and JMeter is content
        return
    rule = kind & (MATCH | CONTAINS | EQUALS | SUBSTRING)
    if rule in (MATCH, CONTAINS) and not any(PATTERN.search(text) for text in texts):
        rule = SUBSTRING if rule == CONTAINS else EQUALS
    if rule not in (MATCH, CONTAINS, EQUALS, SUBSTRING):
        raise node.wrong(f"one of the rules Contains, Matches, Equals and Substring, found {kind}")
    inverse, enough = bool(kind & NOT), bool(kind & OR) and len(texts) > 1
    if where == "Assertion.response_code":
        _status(node, texts, rule, assume, inverse, enough, found)
        return
    if where not in FIELDS:
        raise node.refused(
            f"the field {where.removeprefix('Assertion.')}",
            "test the text response, the response code, the response message or the response headers",
        )
    if enough and inverse:
        raise node.refused(
            "patterns of which one must not be there (Not, Or)", "make an assertion of each that must not be"
        )
    if rule in (MATCH, CONTAINS):
        texts = [taken(text, node).text for text in texts]
    FIELDS[where](texts, rule, inverse, enough, found)
    if assume:
        found.status = set(EVERY)


def _passed_over(node: JmxNode, found: _Expected, values: KnownValues) -> bool:
    """Whether it is not about this request: an assertion looks at a sample, at its sub-samples (embedded
    resources; redirects on the way are none here), or at both. Raises Refused for a variable.
    """
    scope = node.value("Assertion.scope", "parent")
    if not scope:
        values.note(f"{node.element}: its scope is empty, so that, as in JMeter, it looks at nothing")
    elif scope not in OF_PAGE:
        raise node.refused("it applies to a variable", "let it apply to the main sample")
    if scope in ("all", "children"):
        values.note(f"{node.element}: redirects on the way are not held to it, only the last response")
    if scope not in found.scopes:
        node.ignore(*(child.attributes.get("name", child.tag) for child in node.children))
    return scope not in found.scopes


def taken(text: str, node: JmxNode) -> Pattern:
    """A regular expression of the plan as the engine reads it. Raises Refused."""
    try:
        return pattern(text)
    except NotTaken as why:
        raise node.refused(f"the pattern '{text}' with {why}", "write one without") from why


def _body(texts: list[str], rule: int, inverse: bool, enough: bool, found: _Expected) -> None:
    word = "_not" if inverse else ""
    plain = rule in (EQUALS, SUBSTRING)
    if enough:
        joined = "|".join(re.escape(text) if plain else f"(?:{text})" for text in texts)
        found.add("body_matches", joined if rule in (CONTAINS, SUBSTRING) else f"^(?:{joined})$")
    elif rule == SUBSTRING:
        found.add(f"body{word}_contains", *texts)
    elif rule == CONTAINS:
        found.add(f"body{word}_matches", *texts)
    elif rule == EQUALS and len(texts) == 1 and f"body{word}_equals" not in found.equals:
        found.equals[f"body{word}_equals"] = texts[0]
    else:
        found.add(f"body{word}_matches", *(f"^(?:{re.escape(t) if plain else t})$" for t in texts))


def _head(texts: list[str], rule: int, inverse: bool, enough: bool, found: _Expected) -> None:
    """The line with the status, and the headers."""
    named = [HEADER.fullmatch(text) for text in texts]
    if rule == SUBSTRING and not inverse and not enough and all(named):
        found.headers.update({one[1]: one[2].strip() for one in named if one})
        return
    _in_head(texts, rule, inverse, enough, found, "", r"\s*")


def _message(texts: list[str], rule: int, inverse: bool, enough: bool, found: _Expected) -> None:
    """What stands behind the status."""
    _in_head(texts, rule, inverse, enough, found, r"HTTP/\S+ \d{3} ?", r"\r?\n[\s\S]*")


def _in_head(
    texts: list[str], rule: int, inverse: bool, enough: bool, found: _Expected, before: str, after: str
) -> None:
    """`before` and `after`: what stands around the text that is looked at."""
    patterns = [re.escape(text) if rule in (EQUALS, SUBSTRING) else f"(?:{text})" for text in texts]
    if rule in (EQUALS, MATCH):
        patterns = [f"^{before}(?:{pattern}){after}$" for pattern in patterns]
    elif before:
        patterns = [f"^{before}[^\\r\\n]*{pattern}" for pattern in patterns]
    key = "head_not_matches" if inverse else "head_matches"
    found.add(key, *(["|".join(patterns)] if enough else patterns))


FIELDS = {
    "Assertion.response_data": _body,
    "Assertion.response_headers": _head,
    "Assertion.response_message": _message,
}
"""What an assertion may look at besides the status."""


def _status(
    node: JmxNode, texts: list[str], rule: int, assume: bool, inverse: bool, enough: bool, found: _Expected
) -> None:
    allowed = set(EVERY)
    if rule == EQUALS:
        codes = []
        for text in texts:
            if not re.fullmatch(r"[1-5]\d\d", text.strip()):
                raise node.wrong(f"a status of three digits, found '{text}'")
            codes.append(int(text))
        named = [{code} for code in codes]
    elif rule == SUBSTRING:
        named = [{code for code in allowed if text in str(code)} for text in texts]
    elif all(re.fullmatch(r"[0-9.|()\[\]\\d?:^$-]+", text) for text in texts):
        test = re.search if rule == CONTAINS else re.fullmatch
        try:
            named = [{code for code in allowed if test(text, str(code))} for text in texts]
        except re.error as fault:
            raise node.wrong(f"a pattern for the status; {fault}") from fault
    else:
        raise node.refused(
            f"the pattern '{texts[0]}' for the status", "name the statuses, such as 200 or 20[01]"
        )
    if inverse:
        named = [allowed - codes for codes in named]
    right = set.union(*named) if enough else set.intersection(*named)
    found.status = right if assume else found.status & right


def _duration(node: JmxNode, found: _Expected, values: KnownValues) -> None:
    most_ms = values.whole(node.value("DurationAssertion.duration"), node, "DurationAssertion.duration", 0)
    if most_ms < 0:
        raise node.wrong(f"a duration of at least 0, found {most_ms}")
    if _passed_over(node, found, values):
        return
    if most_ms:
        found.max_ms = most_ms if found.max_ms is None else min(most_ms, found.max_ms)
        values.note(f"{node.element}: the time to connect is not in it (JMeter counts it)")


def _size(node: JmxNode, found: _Expected, values: KnownValues) -> None:
    where = node.value("Assertion.test_field")
    size = values.whole(node.value("SizeAssertion.size"), node, "SizeAssertion.size")
    operator = values.whole(node.value("SizeAssertion.operator", "1"), node, "SizeAssertion.operator")
    if where != "SizeAssertion.response_data":
        raise node.refused("a size other than that of the body", "test the response body")
    if _passed_over(node, found, values):
        return
    match operator:
        case 1:
            found.bytes(node, max(size, 0), size)
        case 3:
            found.bytes(node, size + 1)
        case 4:
            found.bytes(node, 0, size - 1)
        case 5:
            found.bytes(node, size)
        case 6:
            found.bytes(node, 0, size)
        case _:
            raise node.refused("a size that the body must not have", "use =, >, <, >= or <=")


def _json(node: JmxNode, found: _Expected, values: KnownValues) -> None:
    pointer = json_pointer(values.constant(node.value("JSON_PATH"), node), node)
    compares = node.flag("JSONVALIDATION")
    expected = values.constant(node.value("EXPECTED_VALUE"), node)
    is_regex = node.flag("ISREGEX", True)
    null = node.flag("EXPECT_NULL")
    inverse = node.flag("INVERT")
    if "parent" not in found.scopes:  # it has no scope: it looks at the main sample
        return
    if inverse and compares:
        raise node.refused("'Invert assertion' of a value", "say what a right response holds")
    if not compares:
        (found.absent if inverse else found.exists).append(pointer)
        return
    if null:
        found.values[pointer] = None
        return
    try:
        value: Any = json.loads(expected)
    except ValueError:
        value = expected
    if not is_regex or (isinstance(value, str) and not PATTERN.search(expected)):
        found.values[pointer] = value
        return
    found.matches[pointer] = f"^(?:{taken(expected, node).text})$"


def _xpath(node: JmxNode, found: _Expected, values: KnownValues) -> None:
    """Whether a query finds something in a page that JMeter tidies up, or in XML."""
    query = values.constant(node.value("XPath.xpath", "/"), node)
    tidies = node.tag == "XPathAssertion" and node.flag("XPath.tolerant")
    inverse = node.flag("XPath.negate")
    node.ignore(*OF_TIDY)
    if _passed_over(node, found, values):
        return
    regex = markup.xpath_test(query, tidies)
    if regex is None:
        raise node.refused(
            f"the query '{query}'",
            "use a tag with one condition, such as //h1[text()='x'], or a Response Assertion",
        )
    if not tidies:
        values.note(
            f"{node.element}: the response is taken for well-formed XML without namespaces (JMeter fails a "
            "response that is none)"
        )
    values.note(f"{node.element}: it looks at tags as they are written, and leaves entities as they are")
    found.add("body_not_matches" if inverse else "body_matches", regex)


_ADD = {
    "XPathAssertion": _xpath,
    "XPath2Assertion": _xpath,
    "ResponseAssertion": _response,
    "DurationAssertion": _duration,
    "SizeAssertion": _size,
    "JSONPathAssertion": _json,
}


def from_top(path: str) -> str:
    """A JSONPath as JMeter reads one that does not begin at the top, or has a dot before a bracket."""
    path = path.strip()
    whole = path if not path or path[0] in "$@" else f"$.{path}"
    return re.sub(r"(?<!\.)\.\[", "[", whole) if "'" not in whole and '"' not in whole else whole


def pointer_of(path: str) -> str | None:
    """A definite JSONPath (names and indexes) as a pointer of RFC 6901."""
    match = PATH.fullmatch(from_top(path))
    if match is None:
        return None
    tokens = (name or quoted or index for name, quoted, index in STEP.findall(match.group(1)))
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def json_pointer(path: str, node: JmxNode) -> str:
    """The same. Raises Refused for a path that may find several places."""
    pointer = pointer_of(path)
    if pointer is None:
        raise node.refused(
            f"the JSON path '{path}' may find several places", "name one place, such as $.items[0].id"
        )
    return pointer
