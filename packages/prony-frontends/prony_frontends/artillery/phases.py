"""Translates config.phases into a schedule of arrivals."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from prony.plan.load import OpenLoad, RatePhase
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import NameScope, constant
from prony_frontends.base import Note

KEYS = frozenset({"duration", "arrivalRate", "rampTo", "arrivalCount", "maxVusers", "pause", "name", "mode"})
MOST_USERS = 100_000
"""Concurrent users without maxVusers: enough that no arrival is blocked."""
MOST_ASKED = 10_000_000
"""The largest maxVusers."""
UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class NamedPhase:
    """A phase as printed."""

    name: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """All phases."""

    load: OpenLoad
    phases: tuple[NamedPhase, ...]
    notes: tuple[Note, ...]


ONE_USER = Schedule(
    OpenLoad(
        phases=(RatePhase(duration_s=1, from_per_s=1, to_per_s=1),),
        session="user", max_users=100, connections=0,
    ),
    (NamedPhase("unnamed", 1),),
    (),
)  # fmt: skip
"""Artillery's default phase, also for --solo."""


def schedule(
    node: ScriptNode | None, scope: NameScope, solo: bool = False, mode: ScriptNode | None = None
) -> Schedule:
    """The arrivals; `mode` applies to phases without one. Raises Refused and UsageError."""
    if node is None or solo:
        return ONE_USER
    rates: list[RatePhase] = []
    named: list[NamedPhase] = []
    caps: list[int | None] = []
    modes: set[str] = set()
    notes: list[Note] = []
    for phase in node.elements():
        notes.extend(phase.unread("the key of a phase", KEYS))
        rate, kind = _phase(phase, scope, mode)
        name = phase.get("name")
        named.append(NamedPhase("unnamed" if name is None else str(name.value), rate.duration_s))
        if rate.from_per_s or rate.to_per_s:
            cap = phase.get("maxVusers")
            most = None if cap is None else int(_value(cap, scope, "a number of users, 1 or more", least=1))
            if cap is not None and most is not None and most > MOST_ASKED:
                raise cap.wrong(f"a number of users, at most {MOST_ASKED:,}")
            rate = rate.model_copy(update={"max_users": most})
            caps.append(most)
            modes.add(kind)
        if rate.from_per_s != rate.to_per_s:
            notes.append(
                phase.note("ramp", "the ramp is continuous; Artillery steps once per second, to whole users")
            )
        rates.append(rate)
    if not rates or not modes:
        raise node.wrong("at least one phase with arrivals")
    if len(modes) > 1:
        raise node.refused("modes that differ between phases", "give all phases the same mode", "conflict")
    arrivals: Literal["constant", "poisson"] = "poisson" if modes == {"poisson"} else "constant"
    total = sum(rate.duration_s * (rate.from_per_s + rate.to_per_s) / 2 for rate in rates)
    places = int(min(MOST_USERS, max(100, ceil(total) + 1)))
    most_users = max(places if cap is None else cap for cap in caps)
    if len(set(caps)) == 1:  # then the load's own limit suffices
        rates = [rate.model_copy(update={"max_users": None}) for rate in rates]
    load = OpenLoad(
        phases=tuple(rates), arrivals=arrivals, session="user", max_users=most_users, connections=0
    )  # fmt: skip
    return Schedule(load, tuple(named), tuple(notes))


def _phase(phase: ScriptNode, scope: NameScope, otherwise: ScriptNode | None) -> tuple[RatePhase, str]:
    mode = phase.get("mode") or otherwise
    kind = "uniform" if mode is None else mode.text()
    if mode is not None and kind not in ("uniform", "poisson"):
        raise mode.refused(f"the mode '{kind}'", "use uniform or poisson")
    pause = phase.get("pause")
    if pause is not None:
        return RatePhase(duration_s=duration_s(pause, scope), from_per_s=0, to_per_s=0), kind
    given = phase.get("duration")
    if given is None:
        raise phase.wrong("a duration (or a pause)")
    length_s = duration_s(given, scope)
    count, rate, to = phase.get("arrivalCount"), phase.get("arrivalRate"), phase.get("rampTo")
    if count is not None:
        per_s = _value(count, scope, "a number of arrivals") / length_s
        return RatePhase(duration_s=length_s, from_per_s=per_s, to_per_s=per_s), kind
    if rate is None and to is None:
        raise phase.wrong("arrivalRate, arrivalCount or pause")
    begin = 0.0 if rate is None else _value(rate, scope, "arrivals per second")
    end = begin if to is None else _value(to, scope, "arrivals per second")
    return RatePhase(duration_s=length_s, from_per_s=begin, to_per_s=end), kind


def _value(node: ScriptNode, scope: NameScope, expected: str, least: float = 0.0) -> float:
    return ScriptNode(constant(node, scope), node.file, node.line, {}).number(expected, least=least)


def duration_s(node: ScriptNode, scope: NameScope) -> float:
    """Seconds above 0, from a number or a text such as 5m. Raises UsageError."""
    seconds = span_s(constant(node, scope))
    if seconds is None or not 0 < seconds <= 7 * 86_400:
        raise node.wrong("seconds above 0, or a text such as 30s or 5m")
    return seconds


def span_s(value: object) -> float | None:
    """Seconds from a number or a text with a unit; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    text = value.strip().lower()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text[len(number) :].strip() or "s"
    unit = {"sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m",
            "minutes": "m", "hour": "h", "hours": "h", "day": "d", "days": "d"}.get(unit, unit)  # fmt: skip
    try:
        return float(number) * UNITS_S[unit]
    except (ValueError, KeyError):
        return None
