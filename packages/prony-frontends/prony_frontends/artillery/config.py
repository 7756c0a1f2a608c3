"""Parts of a script's config that change no request: left out, with a note."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from prony_frontends.artillery.script import ScriptNode
from prony_frontends.base import Note

KNOWN = frozenset({
    "target", "phases", "environments", "payload", "variables", "defaults", "http", "plugins", "ensure",
    "tls", "timeout", "mode", "statsInterval", "name", "engines", "environment", "includeFiles",
})  # fmt: skip
CALLING = frozenset({
    "function", "beforeRequest", "afterResponse", "beforeScenario", "afterScenario", "onError", "whileTrue",
})  # fmt: skip
"""Keys whose values name functions of the processor."""
FAKED = re.compile(r"\{\{\s*(\$rand(?:[A-Z]\w*)?\()")
"""A function of the plugin fake-data."""
PLUGINS = frozenset({"ensure", "expect", "metrics-by-endpoint"})
CHANGING = frozenset({"hls", "fuzzer"})
"""Supported plugins that change requests."""
ENSURED = frozenset({
    "thresholds", "conditions", "maxErrorRate", "min", "max", "median", "p95", "p99",
})  # fmt: skip
"""Keys that the plugin ensure reads."""
HTTP_KNOWN = frozenset({"timeout", "defaults"})
HTTP_CHANGING = frozenset({"cookieJarOptions"})
HTTP_NOTED = {
    "pool": "users reuse idle connections, as in Artillery; when all are in use, another "
    "is opened, where Artillery's user would wait",
    "maxSockets": "ignored: each user has one connection",
    "extendedMetrics": "see prony results show for connect and TLS times",
    "maxRedirects": "ignored, as in Artillery; set maxRedirects on requests",
}


def left_out(root: ScriptNode, config: ScriptNode) -> Iterator[Note]:
    """A note for each key without effect. Raises Refused for an unsupported key that changes requests."""
    strange = [f"config.{key}" for key, _ in config.items() if key not in KNOWN]
    processor = config.children.get("processor")
    if processor is not None and not calls(root.value):
        yield processor.note("not_loaded", "config.processor is not loaded: nothing names a function of it")
    if strange:
        yield Note("unknown_key", f"keys unknown to Artillery are left out: {', '.join(strange)}")
    http = config.get("http")
    for key, child in () if http is None else http.items():
        if key in HTTP_NOTED:
            yield Note("http_option", HTTP_NOTED[key], f"config.http.{key}")
        elif key in HTTP_CHANGING:
            raise child.refused(f"config.http.{key}", "leave it out")
        elif key not in HTTP_KNOWN:
            yield Note("unknown_key", f"keys unknown to Artillery are left out: config.http.{key}")
    engines = config.get("engines")
    for name, child in () if engines is None else engines.items():
        if name != "http":
            yield child.note("unknown_key", f"config.engines.{name} is left out; its scenarios are refused")
    plugins = config.get("plugins")
    yield from _unchecked(config, plugins)
    if plugins is not None and not isinstance(plugins.value, dict):
        yield plugins.note("no_plugins", "config.plugins has no names as keys: no plugin is loaded")
        return
    for name, child in () if plugins is None else plugins.items():
        if name == "fake-data":
            _refuse_drawn(root)
        if name in CHANGING:
            raise child.refused(f"the plugin '{name}'", f"remove it; Prony has {', '.join(sorted(PLUGINS))}")
        if name not in PLUGINS:
            yield child.note("plugin", f"the plugin '{name}' is left out: it sends no reports")


def _refuse_drawn(node: ScriptNode) -> None:
    """Raises Refused for a function of the plugin fake-data, which comes with Artillery."""
    match = FAKED.search(node.value) if isinstance(node.value, str) else None
    if match is not None:
        raise node.refused(
            f"the function {match[1]}) of the plugin fake-data",
            "write such values into a CSV file (config.payload), or draw them with $randomString, "
            "$randomNumber or a function of a processor",
        )
    for child in node.children.values():
        _refuse_drawn(child)


def _unchecked(config: ScriptNode, plugins: ScriptNode | None) -> Iterator[Note]:
    """Notes for malformed checks, where the plugin ensure is on."""
    if plugins is None or "ensure" not in plugins.children:
        return
    section = config.get("ensure") or plugins.get("ensure")
    if section is None or isinstance(section.value, dict):
        yield from () if section is None else section.unread("the check", ENSURED)
    else:
        yield section.note("no_checks", "ensure has no keys and checks nothing, as in Artillery")


CONTENTS = frozenset({"json", "body", "form", "formData", "qs", "headers", "expect"})
"""Request keys whose values are contents, not keys of the script."""


def calls(value: Any) -> bool:
    """Whether any part of this value calls the processor."""
    if isinstance(value, dict):
        inner = ((str(key), child) for key, child in value.items() if key not in CONTENTS)
        return any((key in CALLING and bool(child)) or calls(child) for key, child in inner)
    return isinstance(value, list) and any(calls(inner) for inner in value)
