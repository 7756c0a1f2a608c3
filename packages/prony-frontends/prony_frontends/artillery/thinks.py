"""Pauses of a flow."""

from __future__ import annotations

import re

from prony.plan.think import Think
from prony_frontends.artillery.phases import span_s
from prony_frontends.artillery.script import ScriptNode, UserFails
from prony_frontends.artillery.templates import UNDEFINED, LiteralPart, NameScope, constant, parts, str_of

DRAWN_S = re.compile(r"\s*\{\{\s*\$randomNumber\(\s*(\d{1,4})\s*,\s*(\d{1,4})\s*\)\s*\}\}\s*")
"""A pause in seconds."""
NO_TIME = "val is not a non-empty string or a valid number. val=undefined"
"""Artillery's error for a think without a value."""


def think_of(node: ScriptNode, scope: NameScope, jitter: str | None) -> Think:
    """Translates a pause. Raises UsageError."""
    given = node.children["think"]
    drawn = DRAWN_S.fullmatch(str(given.value))
    if drawn is not None:
        low_s, high_s = sorted((int(drawn[1]), int(drawn[2])))
        scope.uses.said.append(
            given.note("uniform_pause", f"uniform from {low_s} to {high_s} s, with fractions")
        )
        return Think(kind="uniform", min_ms=low_s * 1000.0, max_ms=high_s * 1000.0)
    _check_known(given, scope)
    value = constant(given, scope)
    seconds = span_s(value)
    if seconds is None and str_of(value).isprintable():
        raise UserFails(given, "a think that is not a time", f"Invalid think time: {str_of(value)}")
    if seconds is None or not 0 <= seconds < 86_400:
        raise given.wrong("seconds, or a text such as 500ms")
    own = node.get("jitter")
    spread = str(own.value) if own is not None else jitter
    ms = seconds * 1000
    if not spread:
        return Think(kind="constant", ms=ms)
    share = spread.strip().removesuffix("%")
    try:
        width_ms = ms * float(share) / 100 if share != spread.strip() else _width_ms(spread)
    except ValueError:
        raise (own or node).wrong("a jitter such as 20% or 500ms") from None
    return Think(kind="uniform", min_ms=max(0.0, ms - width_ms), max_ms=ms + width_ms)


def _check_known(given: ScriptNode, scope: NameScope) -> None:
    """Raises UserFails for a text with an undefined part."""
    if not isinstance(given.value, str) or "{{" not in given.value:
        return
    text_parts = list(parts(given.value, given, scope))
    whole = "".join(part.text for part in text_parts if isinstance(part, LiteralPart))
    unknown = any(isinstance(part, LiteralPart) and part.why for part in text_parts)
    if unknown and span_s(whole) is None and whole.isprintable():
        nothing = len(text_parts) == 1 and whole == str(UNDEFINED)
        raise UserFails(given, "a think without time", NO_TIME if nothing else f"Invalid think time: {whole}")


def _width_ms(text: str) -> float:
    seconds = span_s(text)
    if seconds is None or seconds < 0:
        raise ValueError(text)
    return float(text) if text.strip().replace(".", "", 1).isdigit() else seconds * 1000


def is_constant(think: Think | None) -> bool:
    return think is not None and think.kind == "constant"


def jitter_of(defaults: ScriptNode | None) -> str | None:
    think = None if defaults is None else defaults.get("think")
    jitter = None if think is None or not isinstance(think.value, dict) else think.get("jitter")
    return None if jitter is None else str(jitter.value)
