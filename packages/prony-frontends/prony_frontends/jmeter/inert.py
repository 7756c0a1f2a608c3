"""Removes elements without effect on requests (listeners, recorders, GUI settings), with one note."""

from __future__ import annotations

import re
from collections.abc import Sequence

from prony_frontends.jmeter import plain_scripts, scripts
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode

LISTENERS = frozenset({"ResultCollector", "Summariser", "MailerResultCollector", "ResultSaver",
                       "BackendListener", "DebugPostProcessor"})  # fmt: skip
RECORDERS = frozenset({"WorkBench", "ProxyControl", "HttpMirrorControl", "PropertyControl"})
"""Elements that JMeter only stores, with everything below."""
PLUGINS = re.compile(
    r"kg\.apc\.jmeter\.(?:vizualizers|perfmon|jmxmon|dbmon|reporters)\.(?!AutoStop)\w+"
    r"|kg\.apc\.jmeter\.notifier\.\w+|com\.blazemeter\.jmeter\.(?:reporters?|reporting)\.\w+"
    r"|com\.github\.johrstrom\.\w+\.Prometheus\w+"
    r"|\w+(?:\.\w+)+\.\w*(?:Listener|Collector|Visualizer|Reporter|ResultWriter)"
)
"""Listeners of plug-ins, by suffix. AutoStop of jmeter-plugins is different: it ends the run."""
DEFAULTS = frozenset({"HttpDefaultsGui", "SimpleConfigGui"})
"""GUI classes of a ConfigTestElement for HTTP samplers; others hold defaults of other samplers."""


def is_inert(node: JmxNode) -> bool:
    """Whether no request depends on the element."""
    gui = node.attributes.get("guiclass", "").rpartition(".")[2]
    return (
        node.tag in LISTENERS
        or node.tag in RECORDERS
        or PLUGINS.fullmatch(node.tag) is not None
        or (node.tag == "ConfigTestElement" and gui not in DEFAULTS)
        or (node.tag == "ResultAction" and node.value("OnError.action", "0") in ("", "0"))
    )


def remove(top: JmxNode, values: KnownValues, skip_unsupported: bool) -> None:
    """Removes inert elements and skippable scripts, with a note each."""
    inert_nodes: list[JmxNode] = []
    _below(top, inert_nodes)
    skipped = scripts.check(top, skip_unsupported, plain_scripts.is_plain)
    for node, script in skipped:
        requested = node.tag.endswith("Sampler") or not script.harmless
        if requested or not script.empty:
            why = ", because of --skip-unsupported" if requested else ""
            values.note("script_left_out", f"its script is left out ({script.summary}){why}", node)
    if skipped:
        _without(top, [node for node, _ in skipped])
    if inert_nodes:
        values.note("left_out", f"left out with their output: {named(inert_nodes)}")


def _below(node: JmxNode, found: list[JmxNode]) -> None:
    kept: list[JmxNode] = []
    for child in node.below:
        if child.enabled and is_inert(child):
            found.append(child)
        else:
            kept.append(child)
            if child.enabled:
                _below(child, found)
    node.below = kept


def _without(node: JmxNode, gone: Sequence[JmxNode]) -> None:
    node.below = [child for child in node.below if not any(child is removed for removed in gone)]
    for child in node.below:
        _without(child, gone)


def named(nodes: Sequence[JmxNode]) -> str:
    """Descriptions by kind, in the order of the plan, with the first element's name."""
    kinds: dict[str, list[JmxNode]] = {}
    for node in nodes:
        kinds.setdefault(node.tag, []).append(node)
    words = []
    for tag, same in kinds.items():
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        name = f" '{same[0].label}'" if same[0].label != tag else ""
        words.append(f"{tag.rpartition('.')[2]}{name}{more}")
    return ", ".join(words)


def note_foreign(top: JmxNode, values: KnownValues) -> None:
    """Adds a note about properties unknown to JMeter, after the whole plan was read."""
    foreign = [(node, name) for node in top.everything() for name in node.foreign]
    if not foreign:
        return
    node, name = foreign[0]
    more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
    values.note("unknown_property", f"line {node.line}: {name}{more} unknown to JMeter, ignored", node)
