"""Extractors into captures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from prony.plan.blocks import Condition, Loop
from prony.plan.response import Capture
from prony.plan.step import Block, Entry
from prony_frontends import markup
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.responses import check_path, from_top, pointer_of, taken
from prony_frontends.markup import AttributeOf, TextOf

EXTRACTORS = frozenset(
    {
        "RegexExtractor",
        "BoundaryExtractor",
        "JSONPostProcessor",
        "HtmlExtractor",
        "XPathExtractor",
        "XPath2Extractor",
    }
)
OF_TIDY = ("validate", "quiet", "whitespace", "namespace", "reportErrors", "report_errors", "showWarnings",
           "show_warnings", "downloadDTDs", "download_dtds", "namespaces")  # fmt: skip
"""Properties of XPath extractors that change neither attributes nor texts."""
OF_XPATH = {"XPathExtractor": "XPathExtractor", "XPath2Extractor": "XPathExtractor2"}
"""Prefixes of their properties."""
GROUP = re.compile(r"\$\{([^{}$]+)_g(\d{1,2})\}")
"""A group of a regular expression extractor's match."""
LISTED = re.compile(r"__V\(\s*([^,(){}$]+)_\$\{")
NO_MATCH = "\x1f"
"""A value that no response has."""
CaptureKeys = dict[str, Any]
"""A capture's keys."""


def groups_in(node: JmxNode) -> set[tuple[str, int]]:
    """`${name_g1}` in an element's properties."""
    groups = {(name, int(group)) for name, group in GROUP.findall(node.text)}
    for child in node.children:
        groups |= groups_in(child)
    return groups


def listed_in(node: JmxNode) -> set[str]:
    """`name` of `${__V(name_${…})}` in an element's properties: any of an extractor's matches."""
    return set(LISTED.findall(node.text)).union(*map(listed_in, node.children))


def names(node: JmxNode) -> list[tuple[str, bool]]:
    """The variables that an extractor sets, and whether to all matches."""
    if node.tag in OF_XPATH:  # the first match has the plain name
        return [(node.value(f"{OF_XPATH[node.tag]}.refname"), False)]
    if node.tag != "JSONPostProcessor":
        number = node.value(f"{node.tag}.match_number").strip()
        return [(node.value(f"{node.tag}.refname"), number.startswith("-"))]
    variables = node.value("JSONPostProcessor.referenceNames").split(";")
    numbers = node.value("JSONPostProcessor.match_numbers").split(";")
    numbers += [""] * (len(variables) - len(numbers))
    return [
        (name.strip(), number.strip().startswith("-"))
        for name, number in zip(variables, numbers, strict=False)
    ]


def captures(extractors: Sequence[JmxNode], values: KnownValues) -> tuple[dict[str, Capture], list[Entry]]:
    """Captures for later requests, of failed responses too, and their consequences."""
    by_name: dict[str, Capture] = {}
    after: list[Entry] = []
    for node in extractors:
        if node.value("Sample.scope") not in ("", "parent", "all"):
            raise node.refused("it applies to sub-samples or a variable", "let it apply to the main sample")
        if node.value("Sample.scope") == "all":
            values.note("last_response", "it reads the last response, not the redirects before it", node)
        for variable, capture in _EXTRACT[node.tag](node, values):
            name = values.changing(variable, node)
            if capture.get("match") == -1 and "default" in capture and node.tag != "JSONPostProcessor":
                values.initial[name] = Text.of(capture["default"]).engine
            if name in by_name:
                name = _again(name, variable, capture, by_name, after, node, values)
            by_name[name] = Capture.model_validate({**capture, "always": True})
            every = {**capture, "as_json": True, "optional": False, "default": "[]", "always": True}
            if variable in values.listed and capture.get("match") == -1:
                by_name[f"{name}_list"] = Capture.model_validate(every)
            if node.flag("JSONPostProcessor.compute_concat") and capture.get("match") == -1:
                after += _concatenated(variable, every, by_name, node, values)
        node.finish()
    return by_name, after


def _again(
    name: str, variable: str, capture: CaptureKeys, by_name: dict[str, Capture], after: list[Entry],
    node: JmxNode, values: KnownValues,
) -> str:  # fmt: skip
    """A later extractor of a variable: with a default it alone decides, else where it has a match."""
    if -1 in (by_name[name].match, capture.get("match")):
        raise node.refused(f"a second extractor of all matches of '{variable}'", "use two names", "conflict")
    if not capture.get("optional"):
        del by_name[name]
        return name
    own = values.own_value("again")
    del capture["optional"]
    capture["default"] = NO_MATCH
    found = Condition(left=f"${{{own}}}", op="!=", right=NO_MATCH)
    after.append(Block(condition=found, steps=(Block(set={name: f"${{{own}}}"}),)))
    return own


def _concatenated(
    variable: str, every: CaptureKeys, by_name: dict[str, Capture], node: JmxNode, values: KnownValues
) -> list[Entry]:
    """`${name_ALL}`: all values with commas between them."""
    joined = values.changing(f"{variable}_ALL", node)
    listed, one, place = values.own_value("all", "[]"), values.own_value("one"), values.own_value("place")
    values.used.add(joined)
    by_name[listed] = Capture.model_validate({**every, "match": -1})
    first = Condition(left=f"${{{place}}}", op="==", right="0")
    step = Block.model_validate({
        "if": first, "steps": (Block(set={joined: f"${{{one}}}"}),),
        "else": (Block(set={joined: f"${{{joined}}},${{{one}}}"}),),
    })  # fmt: skip
    return [Block(set={joined: ""}), Block(loop=Loop(each=listed, element=one, index=place), steps=(step,))]


def _or_else(node: JmxNode, values: KnownValues, tag: str) -> CaptureKeys:
    """Without a match and a default the variable keeps its value."""
    raw = node.value(f"{tag}.default")
    empty = node.flag(f"{tag}.default_empty_value")
    if raw or empty:
        return {"default": values.constant(raw, node)}
    return {"optional": True}


def _match(text: str, node: JmxNode, values: KnownValues, usual: int) -> CaptureKeys:
    number = values.whole(text, node, "the match number", usual)
    return {} if number == 1 else {"match": max(number, -1)}


def _part(node: JmxNode, tag: str) -> CaptureKeys:
    source = node.value(f"{tag}.useHeaders", "false")
    if source == "true":
        return {"in": "head"}
    if source not in ("false", ""):
        raise node.refused(f"it reads '{source}'", "let it read the body or the response headers")
    return {}


def _regex(node: JmxNode, values: KnownValues) -> Iterator[tuple[str, CaptureKeys]]:
    text = values.constant(node.value("RegexExtractor.regex"), node)
    template = node.value("RegexExtractor.template")
    group = re.fullmatch(r"\$(\d{1,3})\$", template)
    last = max(map(int, re.findall(r"\$(\d{1,3})\$", template)), default=0)
    regex = taken(text, node)
    found = regex.text
    if node.value("RegexExtractor.useHeaders") == "true":  # whose lines end with \n in JMeter
        found = f"(?R:{found})".replace("\\n", "\\r?\\n")
    groups = regex.groups
    if last > groups:
        raise node.wrong(f"at least {last} groups in the pattern '{text}', as the template says")
    variable = node.value("RegexExtractor.refname")
    which = _match(node.value("RegexExtractor.match_number"), node, values, 0)
    for number in sorted(number for name, number in values.grouped if name == variable and number <= groups):
        if which.get("match", 1) < 1:
            raise node.refused(
                f"${{{variable}_g{number}}} of a random match, or of all", "number the match", "part"
            )
        own = f"{variable}_g{number}"
        literal = "${" + own + "}"  # sent by JMeter without a match
        yield (
            own,
            {"regex": found, "group": number, **_part(node, "RegexExtractor"), **which, "default": literal},
        )
    yield (
        variable,
        {
            "regex": found,
            **({"group": int(group.group(1))} if group else {"template": template}),
            **_part(node, "RegexExtractor"),
            **which,
            **_or_else(node, values, "RegexExtractor"),
        },
    )


def _boundary(node: JmxNode, values: KnownValues) -> Iterator[tuple[str, CaptureKeys]]:
    left = values.constant(node.value("BoundaryExtractor.lboundary"), node)
    right = values.constant(node.value("BoundaryExtractor.rboundary"), node)
    yield (
        node.value("BoundaryExtractor.refname"),
        {
            "boundary": {"left": left, "right": right},
            **_part(node, "BoundaryExtractor"),
            **_match(node.value("BoundaryExtractor.match_number"), node, values, 0),
            **_or_else(node, values, "BoundaryExtractor"),
        },
    )


def _json(node: JmxNode, values: KnownValues) -> Iterator[tuple[str, CaptureKeys]]:
    variables = node.value("JSONPostProcessor.referenceNames").split(";")
    paths = node.value("JSONPostProcessor.jsonPathExprs").split(";")
    numbers = node.value("JSONPostProcessor.match_numbers").split(";")
    defaults = node.value("JSONPostProcessor.defaultValues").split(";")
    if len(variables) != len(paths):
        raise node.wrong(f"as many paths as names, found {len(paths)} and {len(variables)}")
    while len(defaults) > 1 and not defaults[-1]:  # as in Java's split
        defaults.pop()
    if len(defaults) != len(variables):
        raise node.wrong(f"as many defaults as names (JMeter takes nothing otherwise), found {len(defaults)}")
    for index, (name, raw) in enumerate(zip(variables, paths, strict=True)):
        number = numbers[index] if index < len(numbers) else ""
        default = values.constant(defaults[index] if index < len(defaults) else "", node)
        path = from_top(values.constant(raw, node).strip())
        match = _match(number, node, values, 0)
        pointer = pointer_of(path)
        if pointer is not None and match.get("match", 1) in (0, 1):
            yield name.strip(), {"json": pointer, "default": default}
            continue
        check_path(path, node, values)
        yield name.strip(), {"jsonpath": path, "default": default, **match}


def _html(node: JmxNode, values: KnownValues) -> Iterator[tuple[str, CaptureKeys]]:
    """A CSS Selector Extractor."""
    selector, attribute = (
        values.constant(node.value(f"HtmlExtractor.{name}"), node) for name in ("expr", "attribute")
    )
    node.ignore("HtmlExtractor.extractor_impl")
    of = markup.css(selector, attribute)
    if of is None:
        raise node.refused(
            f"'{attribute}' of '{selector}'",
            "name an attribute of input[name=x], #x or a tag, or use a boundary extractor",
        )
    yield (
        node.value("HtmlExtractor.refname"),
        {
            **_of_tag(of, node, values),
            **_match(node.value("HtmlExtractor.match_number"), node, values, 0),
            **_or_else(node, values, "HtmlExtractor"),
        },
    )


def _xpath(node: JmxNode, values: KnownValues) -> Iterator[tuple[str, CaptureKeys]]:
    """On HTML tidied by JMeter, or on XML."""
    begins = OF_XPATH[node.tag]
    query = values.constant(node.value(f"{begins}.xpathQuery"), node)
    node.ignore(*(f"{begins}.{name}" for name in OF_TIDY))
    newer = node.tag == "XPath2Extractor"
    tidied = not newer and node.flag("XPathExtractor.tolerant")
    of = markup.xpath(query) or markup.xpath_text(query, tidied, newer)
    if of is None or node.flag(f"{begins}.fragment"):
        raise node.refused(
            f"the query '{query}'",
            "use an attribute or a text, such as //input[@name='x']/@value or //total/text(), or a boundary "
            "extractor",
        )
    number = values.whole(node.value(f"{begins}.matchNumber"), node, "the match number", -1)
    default = values.constant(node.value(f"{begins}.default"), node)
    which = {} if number in (-1, 1) else {"match": max(number, 0)}
    if not tidied:
        values.note("well_formed_xml", "the response must be well-formed XML without namespaces", node)
    yield node.value(f"{begins}.refname"), {**_of_tag(of, node, values), **which, "default": default}


def _of_tag(of: AttributeOf | TextOf, node: JmxNode, values: KnownValues) -> CaptureKeys:
    values.note("tags_in_source", "it reads tags in the source, and does not decode entities", node)
    return {"regex": of.regex, "template": of.template}


_EXTRACT = {
    "RegexExtractor": _regex, "BoundaryExtractor": _boundary, "JSONPostProcessor": _json,
    "HtmlExtractor": _html, **dict.fromkeys(OF_XPATH, _xpath),
}  # fmt: skip
