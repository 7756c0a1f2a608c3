"""Several things that one check found, as its one finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prony.judge.effects import together
from prony.judge.finding import GRAVEST_FIRST, Finding, Kind


def gravest_first(parts: Sequence[Finding]) -> list[Finding]:
    """Of those that are as grave, what has a code before what has none."""
    return sorted(parts, key=lambda one: (GRAVEST_FIRST.index(one.kind), one.code == "ok"))


def joined(parts: Sequence[Finding]) -> Finding:
    """The gravest gives the code and stands first; biases are added. Where nothing is worth a line, there is
    neither code nor advice.
    """
    ordered = gravest_first(parts)
    whole = ordered[0].model_copy(
        update={
            "conforms": all(one.conforms for one in parts),
            "bias": together(*(one.bias for one in ordered)),
            "provided": _listed((one.provided for one in ordered), " and "),
            "assumption": _listed((one.assumption for one in ordered), "; "),
            "reason": _listed((one.reason for one in ordered), "; "),
            "advice": _listed((one.advice for one in ordered), "; "),
        }
    )
    return whole if whole.kind is not Kind.FINE else whole.model_copy(update={"code": "ok", "advice": ""})


def _listed(texts: Iterable[str], between: str) -> str:
    return between.join(dict.fromkeys(text for text in texts if text))
