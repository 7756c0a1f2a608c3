"""Module and Include controllers: what they stand for is put below them, before anything else is read."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.jmx import JmxNode

MODULE, INCLUDE, FRAGMENT = "ModuleController", "IncludeController", "TestFragmentController"
DEEPEST = 16
"""Modules and included files within each other."""
MOST_ELEMENTS = 100_000


def expand(top: JmxNode, folder: Path) -> None:
    """Put in what modules and includes of this test plan name; fragments of the plan itself are left out, as
    only those come to them. Raises Refused and UsageError.
    """
    _below(top, top, folder, 0, [MOST_ELEMENTS])
    top.below = [node for node in top.below if node.tag != FRAGMENT]


def _below(node: JmxNode, top: JmxNode, folder: Path, depth: int, left: list[int]) -> None:
    for child in list(node.below):
        if not child.enabled or (node is top and child.tag == FRAGMENT):
            continue
        left[0] -= 1
        if left[0] < 0 or depth > DEEPEST:
            raise child.refused(
                "modules and includes that go on without an end", "let none of them stand in itself"
            )
        if child.tag == MODULE:
            child.below = [_module(child, top), *child.below]
        elif child.tag == INCLUDE:
            child.below = [*_included(child, folder), *child.below]
        _below(child, top, folder, depth + (child.tag in (MODULE, INCLUDE)), left)


def _module(node: JmxNode, top: JmxNode) -> JmxNode:
    """A copy of the controller that stands at a path of names; it is walked also where it is disabled."""
    names = [child.text for child in node.members("ModuleController.node_path")]
    found = [top] if len(names) > 2 and names[1] == top.label else []
    for name in names[2:]:
        found = [below for one in found for below in one.below if below.label == name]
    if not found:
        raise node.wrong(f"a path to a controller of this plan, found '{' / '.join(names)}'")
    if len(found) > 1:
        raise node.refused(
            f"{len(found)} elements are named '{' / '.join(names)}'", "give the controller a name of its own"
        )
    if any(below is node for below in _all(found[0])):
        raise node.refused("a module that contains itself", "name another controller")
    copy = deepcopy(found[0])
    copy.attributes["enabled"] = "true"
    return copy


def _all(node: JmxNode) -> list[JmxNode]:
    return [node, *(one for below in node.below for one in _all(below))]


def _included(node: JmxNode, folder: Path) -> list[JmxNode]:
    """What stands below the first test fragment of the file."""
    name = node.value("IncludeController.includepath").strip()
    if not name or "${" in name:
        raise node.wrong(f"the path of a file, without variables, found '{name}'")
    plan = jmx.read(folder / name)
    fragments = [below for below in plan.below if below.tag == FRAGMENT]
    if not fragments:
        raise node.wrong(f"a Test Fragment directly below the test plan of {name}")
    return fragments[0].below
