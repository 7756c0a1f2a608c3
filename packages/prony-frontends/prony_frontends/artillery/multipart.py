"""Encodes `formData` of a request as Artillery's client does."""

from __future__ import annotations

import hashlib
import mimetypes
from pathlib import Path

from prony.plan.step import BodyPart
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import NameScope, constant, rendered, str_of, text_of

DASHES = "-" * 26
DIGITS = 24
MOST_BYTES = 16 * 1024 * 1024
"""Limit on files, which the engine reads before the load."""
ANY_TYPE = "application/octet-stream"
VALUE_KEYS = frozenset({"value", "fromFile", "contentType"})


def multipart(node: ScriptNode, scope: NameScope) -> tuple[tuple[BodyPart, ...], str]:
    """The parts of the body, and the content type. Raises Refused and UsageError."""
    boundary = DASHES + _digits(node)
    parts: list[BodyPart] = []
    text = ""
    files = 0
    for name, child in node.items():
        kind, file, value = _part(child, scope)
        about = f'Content-Disposition: form-data; name="{text_of(name, child, scope)}"'
        if file is not None:
            about += f'; filename="{_literal(file.name)}"'
            kind = kind or mimetypes.guess_type(file.name)[0] or ANY_TYPE
            files += file.stat().st_size
        typed = f"\r\nContent-Type: {_literal(kind)}" if kind else ""
        text += f"--{boundary}\r\n{about}{typed}\r\n\r\n{value}"
        if file is not None:
            parts += [BodyPart(text=text), BodyPart(file=str(file))]
            text = ""
        text += "\r\n"
    if files > MOST_BYTES:
        raise node.refused("formData with files of more than 16 MiB", "use smaller files", "limit")
    return (*parts, BodyPart(text=f"{text}--{boundary}--\r\n")), f"multipart/form-data; boundary={boundary}"


def _part(node: ScriptNode, scope: NameScope) -> tuple[str | None, Path | None, str]:
    """Content type or None, file or None, and text of a part."""
    if not isinstance(node.value, dict):
        if isinstance(node.value, list | bool) or node.value is None:
            raise node.wrong("a text, or keys value, fromFile and contentType")
        return None, None, rendered(node, scope)
    node.only("a part of formData:", VALUE_KEYS, "use value, fromFile and contentType")
    kind, name, value = node.get("contentType"), node.get("fromFile"), node.get("value")
    typed = None if kind is None else str_of(constant(kind, scope))
    if name is None:
        if value is None:
            raise node.wrong("value or fromFile")
        return typed, None, rendered(value, scope)
    file = Path(str(scope.constants["$scenarioFile"])).parent / str(constant(name, scope))
    if not file.is_file():
        raise name.wrong(f"a file ({file} does not exist)")
    return typed, file, ""


def _digits(node: ScriptNode) -> str:
    """Fixed boundary in place of random digits, unlikely to occur in a form."""
    seen = hashlib.sha256(repr(node.value).encode()).hexdigest()
    return str(int(seen, 16))[-DIGITS:]


def _literal(text: str) -> str:
    return text.replace("${", "$${")
