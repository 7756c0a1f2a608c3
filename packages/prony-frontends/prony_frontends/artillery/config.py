"""What config of a script holds that changes no request: noted, and left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from prony_frontends.artillery.script import ScriptNode

KNOWN = frozenset({
    "target", "phases", "environments", "payload", "variables", "defaults", "http", "plugins", "ensure",
    "tls", "timeout", "mode", "statsInterval", "name", "engines", "environment", "includeFiles",
})  # fmt: skip
CALLING = frozenset({
    "function", "beforeRequest", "afterResponse", "beforeScenario", "afterScenario", "onError", "whileTrue",
})  # fmt: skip
"""Keys whose values are functions of the processor."""
FAKED = re.compile(r"\{\{\s*(\$rand(?:[A-Z]\w*)?\()")
"""A function of the plugin fake-data in a text."""
PLUGINS = frozenset({"ensure", "expect", "metrics-by-endpoint"})
CHANGING = frozenset({"hls", "fuzzer"})
"""Plugins that change what is sent, beside those whose functions a template would have to name."""
ENSURED = frozenset({
    "thresholds", "conditions", "maxErrorRate", "min", "max", "median", "p95", "p99",
})  # fmt: skip
"""What the plugin ensure reads."""
HTTP_KNOWN = frozenset({"timeout", "defaults"})
HTTP_CHANGING = frozenset({"cookieJarOptions"})
HTTP_NOTED = {
    "pool": "config.http.pool: users take connections that others have left, as there; where all are in use "
    "one more is opened, while Artillery's user waits when there are as many as pool says",
    "maxSockets": "config.http.maxSockets is not followed: each user has one connection",
    "extendedMetrics": "config.http.extendedMetrics: prony results show prints what connecting and TLS took",
    "maxRedirects": "config.http.maxRedirects is not read by Artillery either; requests have maxRedirects",
}


def left_out(root: ScriptNode, config: ScriptNode) -> Iterator[str]:
    """A sentence for each key that nothing is made of. Raises Refused for one that changes requests."""
    strange: list[str] = []
    for key, child in config.items():
        if key == "processor":
            if not calls(root.value):
                yield (
                    f"config.processor ({child.shown}) is not loaded: no request or step names a function "
                    "of it"
                )
        elif key not in KNOWN:
            strange.append(f"config.{key}")
    if strange:
        yield f"keys that Artillery itself does not read are left out: {', '.join(strange)}"
    http = config.get("http")
    for key, child in () if http is None else http.items():
        if key in HTTP_NOTED:
            yield HTTP_NOTED[key]
        elif key in HTTP_CHANGING:
            raise child.refused(f"config.http.{key}", "leave it out")
        elif key not in HTTP_KNOWN:
            yield f"keys that Artillery itself does not read are left out: config.http.{key}"
    engines = config.get("engines")
    for name, child in () if engines is None else engines.items():
        if name != "http":
            yield f"{child.place}: config.engines.{name} is left out; scenarios of another engine are refused"
    plugins = config.get("plugins")
    yield from _unchecked(config, plugins)
    if plugins is not None and not isinstance(plugins.value, dict):
        yield f"{plugins.place}: config.plugins has no names as keys, so that Artillery loads none of them"
        return
    for name, child in () if plugins is None else plugins.items():
        if name == "fake-data":
            _refuse_drawn(root)
        if name in CHANGING:
            raise child.refused(
                f"the plugin '{name}'", f"leave it out; Prony knows {', '.join(sorted(PLUGINS))}"
            )
        if name not in PLUGINS:
            yield (
                f"the plugin '{name}' is left out: what it reports elsewhere is not sent, and what else it "
                "does is not done (as with Artillery where it is not installed)"
            )


def _refuse_drawn(node: ScriptNode) -> None:
    """Raises Refused for a function of the plugin fake-data, which Artillery comes with."""
    found = FAKED.search(node.value) if isinstance(node.value, str) else None
    if found is not None:
        raise node.refused(
            f"the function {found[1]}) of the plugin fake-data",
            "write such values into a CSV file (config.payload), or draw them with $randomString, "
            "$randomNumber or a function of a processor",
        )
    for child in node.children.values():
        _refuse_drawn(child)


def _unchecked(config: ScriptNode, plugins: ScriptNode | None) -> Iterator[str]:
    """What is written as a check and is none, where the plugin ensure is on."""
    if plugins is None or "ensure" not in plugins.children:
        return
    found = config.get("ensure") or plugins.get("ensure")
    if found is None or isinstance(found.value, dict):
        yield from () if found is None else found.unread("the check", ENSURED)
    else:
        yield f"{found.place}: ensure holds no keys, and so no checks, as with Artillery"


CONTENTS = frozenset({"json", "body", "form", "formData", "qs", "headers", "expect"})
"""Keys of a request below which nothing is a key of the script."""


def calls(value: Any) -> bool:
    """Whether something in a script calls the processor."""
    if isinstance(value, dict):
        inner = ((str(key), one) for key, one in value.items() if key not in CONTENTS)
        return any((key in CALLING and bool(one)) or calls(one) for key, one in inner)
    return isinstance(value, list) and any(calls(inner) for inner in value)
