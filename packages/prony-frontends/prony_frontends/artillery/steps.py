"""What Artillery reads of each step of a script; all else is left out, with a note."""

from __future__ import annotations

from prony_frontends.artillery.script import ScriptNode, of, with_children

WITH = {
    "loop": None,  # whoever writes the loop says what of it is not read
    "parallel": frozenset({"parallel", "limit"}),
    "think": frozenset({"think", "jitter"}),
    "log": frozenset({"log"}),
    "function": frozenset({"function"}),
}
"""The keys that make a step something else than a request, in the order in which Artillery asks for them, and
what it reads beside each.
"""
CHECKED = frozenset({"get", "post", "put", "patch", "delete"})
"""The methods whose keys Artillery looks at before it begins."""


def as_read(root: ScriptNode, notes: list[str]) -> ScriptNode:
    """The script with steps that have only what is read; `notes` gets a sentence for all else."""
    children = dict(root.children)
    for name in ("before", "after"):
        if name in children:
            children[name] = _with_flow(children[name], notes)
    scenarios = children.get("scenarios")
    if scenarios is not None and isinstance(scenarios.value, list):
        children["scenarios"] = _listed(scenarios, [_with_flow(one, notes) for one in scenarios.elements()])
    return with_children(root, children)


def _with_flow(node: ScriptNode, notes: list[str]) -> ScriptNode:
    """A scenario, or a section, with the steps of its flow as they are read."""
    flow, engine = node.get("flow"), node.get("engine")
    if flow is None or (engine is not None and engine.value != "http"):
        return node
    return with_children(node, {**node.children, "flow": _flow(flow, notes, checked=True)})


def _flow(node: ScriptNode, notes: list[str], checked: bool = False) -> ScriptNode:
    """`checked`: Artillery looks at these steps before it begins, as it does not at those within others."""
    if not isinstance(node.value, list):
        return node
    return _listed(node, [_step(one, notes, checked) for one in node.elements()])


def _step(node: ScriptNode, notes: list[str], checked: bool) -> ScriptNode:
    if isinstance(node.value, list):
        return _flow(node, notes)
    if not isinstance(node.value, dict) or not node.children:
        return node
    kind = next((key for key in WITH if key in node.children), None)
    known = frozenset({str(next(iter(node.children)))}) if kind is None else WITH[kind]
    kept = dict(node.children)
    if known is not None:
        if checked and not known >= frozenset(node.value):
            raise node.refused(
                f"a step with several keys ({', '.join(map(str, node.value))})",
                "indent below the request what belongs to it, and begin each step with a - of its own; "
                "Artillery does not run this either",
            )
        notes += node.unread(f"beside '{kind or next(iter(known))}' the key", known)
        kept = {key: child for key, child in kept.items() if key in known}
    if kind == "think" and checked and not isinstance(kept[kind].value, str | int | float):
        raise kept[kind].wrong("seconds, or a text such as 500ms; Artillery does not run this either")
    if kind in ("loop", "parallel"):
        kept[kind] = _flow(kept[kind], notes)
    elif kind is None:
        ((method, params),) = kept.items()
        kept = {method: _request(params, checked and method in CHECKED)}
    return with_children(node, kept)


def _request(params: ScriptNode, checked: bool) -> ScriptNode:
    """What a request is made of; nothing where it has no url, and is never sent."""
    if isinstance(params.value, dict) and (params.value.get("url") or params.value.get("uri")):
        return params
    if checked:
        raise params.wrong("the keys of a request, url among them")
    if not isinstance(params.value, dict):
        return params
    return of({}, params.file, params.line)


def _listed(node: ScriptNode, elements: list[ScriptNode]) -> ScriptNode:
    """The list with other elements."""
    return ScriptNode([one.value for one in elements], node.file, node.line, dict(enumerate(elements)))
