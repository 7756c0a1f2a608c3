"""Merges scripts, --config, --overrides, environments and variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prony.errors import UsageError
from prony_frontends.artillery import script
from prony_frontends.artillery.flags import COMMAND_LINE, Flags
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import UNDEFINED, NameScope, constant, settled
from prony_frontends.base import Note, Refused


def whole_script(given: Flags) -> ScriptNode:
    """The merged scripts with --config and --overrides. Raises UsageError."""
    root = script.read(Path(given.scripts[0]))
    for more in given.scripts[1:]:
        root = script.merged(root, script.read(Path(more)), lists="by_index")
    if "config" in given.values:
        root = script.merged(root, script.read(Path(given.values["config"])), lists="by_index")
    if given.overrides:
        root = script.merged(root, script.of(dict(given.overrides), f"{COMMAND_LINE} (--overrides)", None))
    return root


def config_of(root: ScriptNode, given: Flags) -> tuple[ScriptNode, list[Note]]:
    """config with the environment and --target applied, and notes."""
    notes: list[Note] = []
    config = root.get("config") or ScriptNode({}, root.file, root.line, {})
    if not isinstance(config.value, dict):
        raise config.wrong("keys with values")
    name = given.values.get("environment")
    if name is not None:
        environments = config.get("environments")
        chosen = None if environments is None else environments.get(name)
        if chosen is None:
            notes.append(Note("no_environment", f"the environment {name} is not defined in the script"))
        else:
            config = script.merged(config, chosen, lists="by_index")
    if "target" in given.values:
        target = ScriptNode(given.values["target"], f"{COMMAND_LINE} (--target)", None, {})
        config = script.with_children(config, {**config.children, "target": target})
    if "insecure" in given.switches:
        over = script.of({"tls": {"rejectUnauthorized": False}}, COMMAND_LINE, None)
        config = script.merged(config, over)
    return config, notes


def load_scope(given: Flags) -> NameScope:
    """Values of names when Artillery loads a script, and fills in config: the environment, -v."""
    environment = dict(os.environ)
    if "dotenv" in given.values:
        environment |= _dotenv(Path(given.values["dotenv"]))
    file = Path(given.scripts[0]).absolute()
    constants = {
        "$env": environment,
        "$processEnvironment": environment,
        **({"$environment": given.values["environment"]} if "environment" in given.values else {}),
        "$dirname": str(file.parent),
        "$scenarioFile": str(file),
        "$testId": "prony",
    }
    return NameScope({**constants, **given.variables})


def at_load(node: ScriptNode | None, scope: NameScope, nothing: Any = UNDEFINED) -> ScriptNode | None:
    """Default headers or cookies as Artillery fills them in when it loads the script: without variables and
    captures. `nothing`: in place of what has no value.
    """
    if node is None or not isinstance(node.value, dict):
        return node
    children: dict[script.Key, ScriptNode] = {}
    for key, child in node.items():
        value = _resolved(child, scope)
        children[key] = script.of(nothing if value is UNDEFINED else value, child.file, child.line)
    return script.with_children(node, children)


def scope_of(config: ScriptNode, early: NameScope) -> NameScope:
    """Names' values before a scenario: environment, variables, target. `early`: at the script's load."""
    constants: dict[str, Any] = dict(early.constants)
    given = {name: value for name, value in constants.items() if not name.startswith("$")}
    variables = config.get("variables")
    for name, node in () if variables is None else variables.items():
        value = _resolved(node, early)
        if value is not UNDEFINED:
            constants[name] = value
    constants |= given
    target = config.get("target")
    if target is not None:
        constants["target"] = _target(target, NameScope(constants))
    return NameScope(constants, uses=early.uses)


def _target(node: ScriptNode, scope: NameScope) -> Any:
    """The value of config.target. Raises Refused and UsageError."""
    try:
        return constant(node, scope)
    except Refused:
        raise
    except UsageError as fault:
        raise UsageError(f"{fault}; Artillery's users would fail: give --target URL") from fault


def _resolved(node: ScriptNode, scope: NameScope) -> Any:
    """A variable's value, with references to the environment and draws resolved."""
    if isinstance(node.value, list):
        return [_resolved(child, scope) for child in node.elements()]
    if isinstance(node.value, dict):
        return {key: _resolved(child, scope) for key, child in node.items()}
    return settled(node, scope)


def _dotenv(file: Path) -> Mapping[str, str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"--dotenv {file}: cannot be read: {fault}") from fault
    pairs = (line.strip().removeprefix("export ").partition("=") for line in lines if "=" in line)
    return {name.strip(): value.strip().strip("'\"") for name, _, value in pairs if not name.startswith("#")}
