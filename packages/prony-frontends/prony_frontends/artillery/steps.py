"""Reduces a script to the step keys that Artillery reads, with a note for each other key."""

from __future__ import annotations

from prony_frontends.artillery.script import ScriptNode, of, with_children
from prony_frontends.base import Note

WITH = {
    "loop": None,  # loops report their own unread keys
    "parallel": frozenset({"parallel", "limit"}),
    "think": frozenset({"think", "jitter"}),
    "log": frozenset({"log"}),
    "function": frozenset({"function"}),
}
"""Keys that make a step not a request, in Artillery's order, with the other keys that are read."""
CHECKED = frozenset({"get", "post", "put", "patch", "delete"})
"""Methods whose keys Artillery validates before the run."""


def as_read(root: ScriptNode, notes: list[Note]) -> ScriptNode:
    """The script with steps reduced to the keys that are read; `notes` gets the rest."""
    children = dict(root.children)
    for name in ("before", "after"):
        if name in children:
            children[name] = _with_flow(children[name], notes)
    scenarios = children.get("scenarios")
    if scenarios is not None and isinstance(scenarios.value, list):
        children["scenarios"] = _listed(
            scenarios, [_with_flow(scenario, notes) for scenario in scenarios.elements()]
        )
    return with_children(root, children)


def _with_flow(node: ScriptNode, notes: list[Note]) -> ScriptNode:
    """A scenario or section with its flow reduced."""
    flow, engine = node.get("flow"), node.get("engine")
    if flow is None or (engine is not None and engine.value != "http"):
        return node
    return with_children(node, {**node.children, "flow": _flow(flow, notes, checked=True)})


def _flow(node: ScriptNode, notes: list[Note], checked: bool = False) -> ScriptNode:
    """`checked`: Artillery validates these steps before the run, nested steps not."""
    if not isinstance(node.value, list):
        return node
    return _listed(node, [_step(step, notes, checked) for step in node.elements()])


def _step(node: ScriptNode, notes: list[Note], checked: bool) -> ScriptNode:
    if isinstance(node.value, list):
        return _flow(node, notes)
    if not isinstance(node.value, dict) or not node.children:
        return node
    kind = next((key for key in WITH if key in node.children), None)
    readable = frozenset({str(next(iter(node.children)))}) if kind is None else WITH[kind]
    kept = dict(node.children)
    if readable is not None:
        if checked and not readable >= frozenset(node.value):
            raise node.refused(
                f"a step with several keys ({', '.join(map(str, node.value))})",
                "indent a request's keys below it, and start each step with its own -; "
                "Artillery fails as well",
            )
        notes += node.unread(f"next to '{kind or next(iter(readable))}' the key", readable)
        kept = {key: child for key, child in kept.items() if key in readable}
    if kind == "think" and checked and not isinstance(kept[kind].value, str | int | float):
        raise kept[kind].wrong("seconds, or a text such as 500ms; Artillery fails as well")
    if kind in ("loop", "parallel"):
        kept[kind] = _flow(kept[kind], notes)
    elif kind is None:
        ((method, params),) = kept.items()
        kept = {method: _request(params, checked and method in CHECKED)}
    return with_children(node, kept)


def _request(params: ScriptNode, checked: bool) -> ScriptNode:
    """The parts of a request; empty without a url, as it is never sent."""
    if isinstance(params.value, dict) and (params.value.get("url") or params.value.get("uri")):
        return params
    if checked:
        raise params.wrong("the keys of a request, url among them")
    if not isinstance(params.value, dict):
        return params
    return of({}, params.file, params.line)


def _listed(node: ScriptNode, elements: list[ScriptNode]) -> ScriptNode:
    """The list with other elements."""
    return ScriptNode(
        [element.value for element in elements], node.file, node.line, dict(enumerate(elements))
    )
