"""Replaces plug-ins' elements that JMeter has itself, and those of plain JMESPaths, before translation."""

from __future__ import annotations

import re

from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.responses import pointer_of

OF_JSON = "com.atlantbh.jmeter.plugins.jsonutils"
ASSERTION = f"{OF_JSON}.jsonpathassertion.JSONPathAssertion"
EXTRACTOR = f"{OF_JSON}.jsonpathextractor.JSONPathExtractor"
RANDOM_ROWS = "com.blazemeter.jmeter.RandomCSVDataSetConfig"
NAMES = {
    "VAR": "JSONPostProcessor.referenceNames",
    "JSONPATH": "JSONPostProcessor.jsonPathExprs",
    "DEFAULT": "JSONPostProcessor.defaultValues",
}
"""Properties of the plug-in's extractor -> JMeter's."""
PLAIN = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d+\])*")
"""A JMESPath that is a JSON path without its $."""
OF_JMESPATH = {
    "JMESPathAssertion": ("JSONPathAssertion", {"JMES_PATH": "JSON_PATH"}),
    "JMESPathExtractor": ("JSONPostProcessor", {
        f"JMESExtractor.{name}": f"JSONPostProcessor.{other}" for name, other in (
            ("referenceName", "referenceNames"), ("jmesPathExpr", "jsonPathExprs"),
            ("matchNumber", "match_numbers"), ("defaultValue", "defaultValues"))}),
}  # fmt: skip


def become_own(top: JmxNode) -> None:
    """Converts JSON assertions, JSON extractors with a definite path, the random data set."""
    for node in top.everything():
        if node.tag == ASSERTION:
            node.tag = "JSONPathAssertion"
        elif node.tag == EXTRACTOR:
            _extractor(node)
        elif node.tag == RANDOM_ROWS:
            _random_rows(node)
        elif node.tag in OF_JMESPATH:
            _jmespath(node, *OF_JMESPATH[node.tag])


def _jmespath(node: JmxNode, tag: str, names: dict[str, str]) -> None:
    path = node.value("JMES_PATH") or node.value("JMESExtractor.jmesPathExpr")
    if (
        not PLAIN.fullmatch(path.strip())
        or node.flag("INVERT")
        or ";" in node.value("JMESExtractor.referenceName")
    ):
        raise node.refused(f"the JMESPath '{path}'", "use names and indexes, such as items[0].id")
    node.tag = tag
    _rename(node, names)


def _rename(node: JmxNode, names: dict[str, str]) -> None:
    for child in node.children:
        name = child.attributes.get("name", "")
        child.attributes["name"] = names.get(name, name)


def _extractor(node: JmxNode) -> None:
    whole = node.value("SUBJECT").strip() in ("", "BODY")
    if not whole or pointer_of(node.value("JSONPATH")) is None:
        return
    node.ignore("SUBJECT", "VARIABLE")
    node.tag = "JSONPostProcessor"
    _rename(node, NAMES)
    number = {"name": "JSONPostProcessor.match_numbers"}
    node.children.append(JmxNode("stringProp", number, node.line, node.file, "1"))


def _random_rows(node: JmxNode) -> None:
    """A data set with all rows of its file, drawn without replacement."""
    shuffled, again = node.flag("randomOrder"), node.flag("rewindOnTheEndOfList")
    own = node.flag("independentListPerThread")
    if shuffled and own:
        raise node.refused(
            "a separate random order per thread", "untick 'Independent list per thread'", "shared"
        )
    node.tag = "CSVDataSet"
    node.attributes["rows"] = "shuffled" if shuffled else ""
    given = {
        "recycle": again,
        "stopThread": not again,
        "quotedData": True,
        "shareMode": "shareMode.thread" if own else "shareMode.all",
    }
    for name, value in given.items():
        text = str(value).lower() if isinstance(value, bool) else value
        node.children.append(JmxNode("stringProp", {"name": name}, node.line, node.file, text))
