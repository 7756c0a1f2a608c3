"""Elements that change nothing of what is sent: listeners, recorders, what JMeter's window alone uses. They
are taken out of the tree before anything else is read, and named in one note.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from prony_frontends.jmeter import plain_scripts, scripts
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode

LISTENERS = frozenset({"ResultCollector", "Summariser", "MailerResultCollector", "ResultSaver",
                       "BackendListener", "DebugPostProcessor"})  # fmt: skip
RECORDERS = frozenset({"WorkBench", "ProxyControl", "HttpMirrorControl", "PropertyControl"})
"""JMeter runs none of them, nor what stands below: that is only kept."""
PLUGINS = re.compile(
    r"kg\.apc\.jmeter\.(?:vizualizers|perfmon|jmxmon|dbmon|reporters)\.(?!AutoStop)\w+"
    r"|kg\.apc\.jmeter\.notifier\.\w+|com\.blazemeter\.jmeter\.(?:reporters?|reporting)\.\w+"
    r"|com\.github\.johrstrom\.\w+\.Prometheus\w+"
    r"|\w+(?:\.\w+)+\.\w*(?:Listener|Collector|Visualizer|Reporter|ResultWriter)"
)
"""Listeners of plug-ins, by what they are called. AutoStop of jmeter-plugins ends a run and is none."""
DEFAULTS = frozenset({"HttpDefaultsGui", "SimpleConfigGui"})
"""Windows of a ConfigTestElement that HTTP samplers look at; others hold the defaults of other samplers."""


def is_inert(node: JmxNode) -> bool:
    """Whether nothing that is sent depends on it."""
    gui = node.attributes.get("guiclass", "").rpartition(".")[2]
    return (
        node.tag in LISTENERS
        or node.tag in RECORDERS
        or PLUGINS.fullmatch(node.tag) is not None
        or (node.tag == "ConfigTestElement" and gui not in DEFAULTS)
        or (node.tag == "ResultAction" and node.value("OnError.action", "0") in ("", "0"))
    )


def remove(top: JmxNode, values: KnownValues, skip_unsupported: bool) -> None:
    """Take them out, and the scripts that may be left out; say so in a note each."""
    found: list[JmxNode] = []
    _below(top, found)
    skipped = scripts.check(top, skip_unsupported, plain_scripts.is_plain)
    for node, script in skipped:
        asked = node.tag.endswith("Sampler") or not script.harmless
        if asked or not script.empty:
            why = ", as --skip-unsupported asks" if asked else ""
            values.note(f"{node.element}: its script is left out ({script.summary}){why}")
    if skipped:
        _without(top, [node for node, _ in skipped])
    if found:
        values.note(
            f"these elements change no request; what they would show or send elsewhere is left out: "
            f"{named(found)}"
        )


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
    node.below = [child for child in node.below if not any(child is one for one in gone)]
    for child in node.below:
        _without(child, gone)


def named(nodes: Sequence[JmxNode]) -> str:
    """By kind, in the order of the plan, with the first one's name."""
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
    """One note of the properties that JMeter passes over, after the whole plan was read."""
    found = [(node, name) for node in top.everything() for name in node.foreign]
    if not found:
        return
    node, name = found[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    values.note(
        f"{node.file}:{node.line}: {node.element}: JMeter knows no property {name}{more}, and passes over "
        "such; so does Prony"
    )
