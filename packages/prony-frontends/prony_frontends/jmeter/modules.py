"""Inserts the targets of Module and Include Controllers below them, before translation."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.jmx import JmxNode

MODULE, INCLUDE, FRAGMENT = "ModuleController", "IncludeController", "TestFragmentController"
DEEPEST = 16
"""Limit on nested modules and included files."""
MOST_ELEMENTS = 100_000


def expand(top: JmxNode, folder: Path) -> None:
    """Inserts modules and includes; removes fragments. Raises Refused and UsageError, for a disabled module
    without a target, too.
    """
    for node in _all(top):
        if node.tag == MODULE:
            _targets(node, top)
    _below(top, top, folder, 0, [MOST_ELEMENTS])
    top.below = [node for node in top.below if node.tag != FRAGMENT]


def _below(node: JmxNode, top: JmxNode, folder: Path, depth: int, left: list[int]) -> None:
    for child in list(node.below):
        if not child.enabled or (node is top and child.tag == FRAGMENT):
            continue
        left[0] -= 1
        if left[0] < 0 or depth > DEEPEST:
            raise child.refused(
                "modules and includes with endless recursion", "remove the recursion", "nested"
            )
        if child.tag == MODULE:
            child.below = [_module(child, top), *child.below]
        elif child.tag == INCLUDE:
            child.below = [*_included(child, folder), *child.below]
        _below(child, top, folder, depth + (child.tag in (MODULE, INCLUDE)), left)


def _module(node: JmxNode, top: JmxNode) -> JmxNode:
    """A copy of the controller at a path of names; it runs even if it is disabled."""
    matches = _targets(node, top)
    if len(matches) > 1:
        raise node.refused(f"{len(matches)} elements named '{matches[0].label}'", "make the name unique")
    if any(below is node for below in _all(matches[0])):
        raise node.refused("a module that contains itself", "name another controller", "nested")
    copy = deepcopy(matches[0])
    copy.attributes["enabled"] = "true"
    return copy


def _targets(node: JmxNode, top: JmxNode) -> list[JmxNode]:
    names = [child.text for child in node.members("ModuleController.node_path")]
    matches = [top] if len(names) > 2 and names[1] == top.label else []
    for name in names[2:]:
        matches = [below for parent in matches for below in parent.below if below.label == name]
    if not matches:
        raise node.wrong(f"a path to a controller of this plan, found '{' / '.join(names)}'")
    return matches


def _all(node: JmxNode) -> list[JmxNode]:
    return [node, *(inner for below in node.below for inner in _all(below))]


def _included(node: JmxNode, folder: Path) -> list[JmxNode]:
    """The content of the file's first test fragment."""
    name = node.value("IncludeController.includepath").strip()
    if not name or "${" in name:
        raise node.wrong(f"the path of a file, without variables, found '{name}'")
    plan = jmx.read(folder / name)
    fragments = [below for below in plan.below if below.tag == FRAGMENT]
    if not fragments:
        raise node.wrong(f"a Test Fragment directly below the test plan of {name}")
    return fragments[0].below
