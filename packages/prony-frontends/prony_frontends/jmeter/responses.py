"""Translates assertions into expectations, and extractors into captures."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from prony.plan.response import Expectation, FilledText
from prony_frontends import markup
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.uris import may_match
from prony_frontends.patterns import Pattern, Untranslatable, pattern

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
"""Properties of an XPathAssertion that do not affect a query on a page."""
SUCCESS, REDIRECTS = range(200, 300), range(300, 400)
NOT_FOLLOWED = (300, 304, 305)
EVERY = range(100, 600)
MATCH, CONTAINS, NOT, EQUALS, SUBSTRING, OR = 1, 2, 4, 8, 16, 32
PATTERN = re.compile(r"[\\.^$*+?{}\[\]()|]")
PATH = re.compile(r"\$((?:\.[A-Za-z_][\w-]*|\['[^'\\]*'\]|\[\d+\])*)")
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\r\n]*)")
STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^'\\]*)'\]|\[(\d+)\]")
SPECIAL = re.compile(r"""=~|\w\(|\(@|\[\?|\['[^']*'\s*,""")
"""Syntax of JMeter's JSON paths beyond RFC 9535."""
FILTER = re.compile(
    r"""\[\?\((?:@(?:\.[A-Za-z_][\w-]*|\['[^'\\]*'\]|\[\d+\])*|[=!]=|[<>]=?|&&|\|\||[!()]|-?\d+(?:\.\d+)?"""
    r"""|true|false|null|'[^'\\]*'|"[^"\\]*"|\s)+\)\]"""
)
"""Filters with the same meaning in RFC 9535: comparisons with numbers and texts, existence, and, or, not."""
OF_NUMBER = re.compile(r"""[=<>]\s*['"]?-?\d""")
OF_REQUEST = frozenset({"parent", "all"})
"""Scopes of assertions for a request without embedded resources,"""
OF_PAGE = OF_REQUEST | {"children"}
"""for a page, which is a sub-sample in JMeter,"""
OF_EMBEDDED = frozenset({"all", "children"})
"""and for embedded resources."""


@dataclass(slots=True)
class _Expected:
    status: set[int]
    scopes: frozenset[str] = OF_REQUEST
    """Scopes of the assertions that count."""
    headers: dict[str, str] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    """`body_contains` and similar."""
    equals: dict[str, str] = field(default_factory=dict)
    least_bytes: int = 0
    most_bytes: int | None = None
    max_ms: int | None = None
    values: dict[str, Any] = field(default_factory=dict)
    matches: dict[str, str] = field(default_factory=dict)
    """JSON pointer -> regex for the whole value as a text."""
    exists: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    """JSON path -> regex for one of its values as a text."""
    filled: list[FilledText] = field(default_factory=list)

    def add(self, key: str, *texts: str) -> None:
        self.texts.setdefault(key, []).extend(texts)

    def bytes(self, node: JmxNode, least: int = 0, most: int | None = None) -> None:
        """Narrows the bounds of the body's size."""
        self.least_bytes = max(self.least_bytes, least)
        if most is not None:
            self.most_bytes = most if self.most_bytes is None else min(most, self.most_bytes)
        if self.most_bytes is not None and self.most_bytes < self.least_bytes:
            raise node.wrong("satisfiable size assertions")


def expectation(
    assertions: Sequence[JmxNode], follows: bool, values: KnownValues, scopes: frozenset[str] = OF_REQUEST
) -> Expectation:
    """The expected response of a sampler: JMeter's rule (a status below 400), and the assertions in these
    scopes.

    `follows`: redirects are followed, so a redirect is not the last response.
    """
    usual = {*SUCCESS, *(NOT_FOLLOWED if follows else REDIRECTS)}
    combined = _Expected(usual, scopes)
    for assertion in assertions:
        _ADD[assertion.tag](assertion, combined, values)
        assertion.finish()
    if not combined.status:
        raise assertions[-1].refused("these statuses exclude every response", "tick 'ignore status'")
    least, most = combined.least_bytes, combined.most_bytes
    return Expectation.model_validate(
        {
            "status": () if combined.status >= set(EVERY) else tuple(sorted(combined.status)),
            "headers": combined.headers,
            **{key: tuple(texts) for key, texts in combined.texts.items()},
            **combined.equals,
            "body_bytes": least if least == most else None,
            "min_bytes": least if least and least != most else None,
            "max_bytes": most if least != most else None,
            "max_ms": combined.max_ms,
            "json": combined.values,
            "json_matches": combined.matches,
            "json_exists": tuple(combined.exists),
            "json_absent": tuple(combined.absent),
            "json_paths": combined.paths,
            "filled": tuple(combined.filled),
        }
    )


def asserts_within(assertions: Sequence[JmxNode]) -> bool:
    """Whether any of them applies to sub-samples."""
    scoped = (assertion for assertion in assertions if assertion.tag != "JSONPathAssertion")
    return any(assertion.value("Assertion.scope") in OF_EMBEDDED for assertion in scoped)


def _response(node: JmxNode, found: _Expected, values: KnownValues) -> None:
    where = node.value("Assertion.test_field", "Assertion.response_data")
    kind = values.whole(node.value("Assertion.test_type", "2"), node, "Assertion.test_type")
    assume = node.flag("Assertion.assume_success")
    node.ignore("Assertion.custom_message")
    if _passed_over(node, found, values):
        return
    held, values.stores = values.stores, None
    patterns = [values.text(entry.text, node) for entry in node.members("Asserion.test_strings")]
    values.stores = held
    if any(text.constant is None for text in patterns):
        _changing(node, where, patterns, kind, found, values)
        found.status = set(EVERY) if assume else found.status
        return
    texts = [text.constant or "" for text in patterns]
    if not texts:  # nothing to check, which passes in JMeter
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
        raise node.refused("patterns with Not and Or", "make an assertion of each pattern", "conflict")
    if rule in (MATCH, CONTAINS):
        texts = [taken(text, node).text for text in texts]
    FIELDS[where](texts, rule, inverse, enough, found)
    if assume:
        found.status = set(EVERY)


def _changing(
    node: JmxNode, where: str, texts: Sequence[Text], kind: int, found: _Expected, values: KnownValues
) -> None:
    """Texts with changing values."""
    whole = bool(kind & (MATCH | EQUALS))
    part = FILLED.get(where)
    if part is None or (part == "head" and whole) or (kind & OR and len(texts) > 1):
        raise node.refused(
            "a value that changes from request to request, in this field or with Or",
            "compare it with the text response, the response code or a part of the headers",
            "varies",
        )
    for piece in (piece for text in texts for piece in text.parts if kind & (MATCH | CONTAINS)):
        if may_match(piece, PATTERN.pattern, values) if piece.dynamic else PATTERN.search(piece.text):
            raise node.refused(
                f"'{piece.text}', which may be a pattern, with a value that changes from request to request",
                "choose Substring or Equals",
                "varies",
            )
    found.filled += [
        FilledText(text=text.engine, part=part, whole=whole, absent=bool(kind & NOT)) for text in texts
    ]


def _passed_over(node: JmxNode, found: _Expected, values: KnownValues) -> bool:
    """Whether the assertion does not apply to this request: it applies to a sample, its sub-samples (embedded
    resources; here redirects are none), or both. Raises Refused for a variable.
    """
    scope = node.value("Assertion.scope", "parent")
    if not scope:
        values.note("no_scope", "its scope is empty, so it checks nothing, as in JMeter", node)
    elif scope not in OF_PAGE:
        raise node.refused("it applies to a variable", "let it apply to the main sample")
    if scope in ("all", "children"):
        values.note("last_response", "it checks the last response only, not redirects", node)
    if scope not in found.scopes:
        node.ignore(*(child.attributes.get("name", child.tag) for child in node.children))
    return scope not in found.scopes


def taken(text: str, node: JmxNode) -> Pattern:
    """A regular expression in the engine's syntax. Raises Refused."""
    try:
        return pattern(text)
    except Untranslatable as why:
        raise node.refused(f"the pattern '{text}' with {why}", "simplify it") from why


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
    """The status line and the headers."""
    named = [HEADER.fullmatch(text) for text in texts]
    if rule == SUBSTRING and not inverse and not enough and all(named):
        found.headers.update(
            {header_match[1]: header_match[2].strip() for header_match in named if header_match}
        )
        return
    _in_head(texts, rule, inverse, enough, found, "", r"\s*")


def _message(texts: list[str], rule: int, inverse: bool, enough: bool, found: _Expected) -> None:
    """The reason phrase."""
    _in_head(texts, rule, inverse, enough, found, r"HTTP/\S+ \d{3} ?", r"\r?\n[\s\S]*")


def _in_head(
    texts: list[str], rule: int, inverse: bool, enough: bool, found: _Expected, before: str, after: str
) -> None:
    """`before` and `after`: patterns around the checked text."""
    patterns = [re.escape(text) if rule in (EQUALS, SUBSTRING) else f"(?R:{text})" for text in texts]
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
"""Parts of a response that an assertion may check besides the status."""
FILLED: dict[str, Literal["body", "head", "status"]] = {
    "Assertion.response_data": "body",
    "Assertion.response_headers": "head",
    "Assertion.response_code": "status",
}
"""Those that it may compare with a changing value."""


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
        raise node.refused(f"the pattern '{texts[0]}' for the status", "name statuses, as 200 or 20[01]")
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
        values.note("connect_time", "connect time is not included (in JMeter it is)", node)


def _size(node: JmxNode, found: _Expected, values: KnownValues) -> None:
    where = node.value("Assertion.test_field")
    size = values.whole(node.value("SizeAssertion.size"), node, "SizeAssertion.size")
    operator = values.whole(node.value("SizeAssertion.operator", "1"), node, "SizeAssertion.operator")
    if where != "SizeAssertion.response_data":
        raise node.refused("a size other than the body's", "test the response body")
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
    path = from_top(values.constant(node.value("JSON_PATH"), node))
    pointer = pointer_of(path)
    compares = node.flag("JSONVALIDATION")
    expected = values.constant(node.value("EXPECTED_VALUE"), node)
    is_regex = node.flag("ISREGEX", True)
    null = node.flag("EXPECT_NULL")
    inverse = node.flag("INVERT")
    if "parent" not in found.scopes:  # without a scope it applies to the main sample
        return
    if inverse and compares:
        raise node.refused("'Invert assertion' of a value", "give the expected value")
    if pointer is None:
        if inverse or (compares and (null or not is_regex)):
            raise node.refused(
                f"several values at '{path}' that are null, absent or compared as JSON",
                "match them with a regular expression, or select a single value, such as $.items[0].id",
            )
        check_path(path, node, values)
        found.paths[path] = f"^(?:{taken(expected, node).text})$" if compares else ""
        return
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
    """Whether a query matches a page tidied by JMeter, or XML."""
    query = values.constant(node.value("XPath.xpath", "/"), node)
    tidies = node.tag == "XPathAssertion" and node.flag("XPath.tolerant")
    inverse = node.flag("XPath.negate")
    node.ignore(*OF_TIDY)
    if _passed_over(node, found, values):
        return
    regex = markup.xpath_test(query, tidies)
    if regex is None:
        raise node.refused(f"the query '{query}'", "use a tag with one condition, as //h1[text()='x']")
    if not tidies:
        values.note("well_formed_xml", "the response must be well-formed XML without namespaces", node)
    values.note("tags_in_source", "it reads tags in the source, and does not decode entities", node)
    found.add("body_not_matches" if inverse else "body_matches", regex)


_ADD = {
    "XPathAssertion": _xpath, "XPath2Assertion": _xpath, "ResponseAssertion": _response,
    "DurationAssertion": _duration, "SizeAssertion": _size, "JSONPathAssertion": _json,
}  # fmt: skip


def from_top(path: str) -> str:
    """A JSONPath completed as JMeter does: without a leading $, or with a dot before a bracket."""
    path = path.strip()
    whole = path if not path or path[0] in "$@" else f"$.{path}"
    return re.sub(r"(?<!\.)\.\[", "[", whole) if "'" not in whole and '"' not in whole else whole


def pointer_of(path: str) -> str | None:
    """RFC 6901 pointer of a definite JSONPath (names and indexes)."""
    match = PATH.fullmatch(from_top(path))
    if match is None:
        return None
    tokens = (name or quoted or index for name, quoted, index in STEP.findall(match.group(1)))
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def check_path(path: str, node: JmxNode, values: KnownValues) -> None:
    """Raises Refused for a JSON path that RFC 9535 does not read as JMeter does."""
    if not path.startswith("$") or SPECIAL.search(FILTER.sub("[*]", path)):
        raise node.refused(f"the JSON path '{path}'", "use one of RFC 9535, such as $.items[*].id")
    if any(OF_NUMBER.search(condition) for condition in FILTER.findall(path)):
        values.note("same_types", f"'{path}' compares only values of one type (JMeter: mixed, too)", node)
