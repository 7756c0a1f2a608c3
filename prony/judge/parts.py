"""Partial findings of a check joined into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prony.judge.effects import together
from prony.judge.finding import GRAVEST_FIRST, Finding, Kind


def gravest_first(parts: Sequence[Finding]) -> list[Finding]:
    return sorted(parts, key=lambda part: (GRAVEST_FIRST.index(part.kind), part.code == "ok"))


def joined(parts: Sequence[Finding]) -> Finding:
    """The most severe part comes first and gives the code; biases are added; a harmless whole is `ok`."""
    ordered = gravest_first(parts)
    whole = ordered[0].model_copy(
        update={
            "conforms": all(part.conforms for part in parts),
            "bias": together(*(part.bias for part in ordered)),
            "provided": _listed((part.provided for part in ordered), " and "),
            "assumption": _listed((part.assumption for part in ordered), "; "),
            "reason": _listed((part.reason for part in ordered), "; "),
            "advice": _listed((part.advice for part in ordered), "; "),
        }
    )
    return whole if whole.kind is not Kind.FINE else whole.model_copy(update={"code": "ok", "advice": ""})


def _listed(texts: Iterable[str], between: str) -> str:
    return between.join(dict.fromkeys(text for text in texts if text))
