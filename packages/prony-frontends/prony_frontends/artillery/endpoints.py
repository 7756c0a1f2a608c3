"""Names of requests, as the plugin metrics-by-endpoint makes them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

from prony.plan.target import Url
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import NameScope, rendered, str_of

UNGROUPED = "leave groupDynamicURLs out: names are then as written in the script"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Options of the plugin."""

    only_names: bool = False
    strip_query: bool = False
    ignores_unnamed: bool = False
    by_value: bool = False
    """Whether names have the values of templates, not the templates."""

    def called(
        self, url: ScriptNode, name: ScriptNode | None, target: Url, base_path: str, scope: NameScope
    ) -> str:
        """Server if not the target, decoded path and query, name. Raises Refused for values of the run."""
        label = None if name is None else self._text(name, scope)
        if label is not None and self.only_names:
            return label
        text = self._text(url, scope).strip()
        scheme, separator, rest = text.partition("://")
        server = ""
        if separator and scheme in ("http", "https"):
            end = min((place for mark in "/?#" if (place := rest.find(mark)) >= 0), default=len(rest))
            authority, text = rest[:end].rpartition("@")[2], rest[end:]
            text = text if text.startswith("/") else "/" + text
            host, _, port = authority.partition(":")
            server = host if host.lower() != target.host else ""
            if port and not target.url.endswith(f":{port}"):
                server += f":{port}"
        elif text.startswith("/"):
            text = base_path.replace("$${", "${") + text
        text = text.partition("#")[0]
        path, mark, query = text.partition("?")
        text = path.replace("\\", "/") + mark + query
        if self.strip_query:
            text = text.partition("?")[0]
        with suppress(UnicodeDecodeError):  # the plugin fails
            text = unquote(text, errors="strict")
        text = (server + text) or "/"
        return text if label is None else f"{text} ({label})"

    def _text(self, node: ScriptNode, scope: NameScope) -> str:
        if not self.by_value:
            return str_of(node.value)
        text = rendered(node, scope)
        if "${" in text.replace("$${", ""):
            raise node.refused("groupDynamicURLs: false with a value of the run", UNGROUPED, "varies")
        return text.replace("$${", "${")


NAMED = Endpoints()
"""Names as without options."""
