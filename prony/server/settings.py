"""Settings of a server from a plan or an address: values, heap, JVM flags, JDK."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from prony.errors import UsageError
from prony.plan.yamlfile import nearest
from prony.server.spec import Ceilings, ServerSpec, Value

GENERAL = ("heap", "jdk")
"""Settings that every server on a JVM has."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Nothing set is the default. Values replace those of the server's `settings` key, flags come after its
    own.
    """

    values: dict[str, Value] = field(default_factory=dict)
    heap: str | None = None
    jvm_flags: tuple[str, ...] = ()
    jdk: str | None = None
    """A major version or a JDK's directory."""


def parse(words: list[str]) -> Settings:
    """The settings of an address, each `name=value`."""
    pairs = dict(word.split("=", 1) for word in words)
    heap, jdk = pairs.pop("heap", None), pairs.pop("jdk", None)
    return Settings({name: _number(text) for name, text in pairs.items()}, heap=heap, jdk=jdk)


def configure(spec: ServerSpec, settings: Settings) -> ServerSpec:
    """The server with these settings, which its name then includes (flags aside). Raises UsageError for an
    unknown one. A setting named like a ceiling (`worker_threads`) sets that ceiling, too.
    """
    for name in settings.values:
        if name not in spec.settings:
            known = [*spec.settings, *(GENERAL if spec.on_jvm else ())]
            raise UsageError(
                f"server '{spec.base}' has no setting '{name}'{nearest(name, known)}; "
                f"its settings: {', '.join(known) or 'none'}"
            )
    if not spec.on_jvm and (settings.heap or settings.jvm_flags or settings.jdk):
        raise UsageError(
            f"server '{spec.base}' does not run on a JVM: heap, jvm_flags and jdk do not apply to it"
        )
    if settings.heap is not None and not re.fullmatch(r"[1-9]\d*[kmgKMG]", settings.heap):
        raise UsageError(
            f"the heap of '{spec.base}' is '{settings.heap}': expected a size such as 512m or 8g"
        )
    said = [f"{name}={value}" for name, value in settings.values.items()]
    said += [f"{name}={value}" for name, value in (("heap", settings.heap), ("jdk", settings.jdk)) if value]
    name = "+".join((spec.name, *said))
    values = spec.settings | settings.values
    return spec.model_copy(
        update={
            "name": name if ":" in spec.name else name.replace("+", ":", 1),
            "settings": values,
            "ceilings": bounded(spec.ceilings, values),
            "heap": settings.heap or spec.heap,
            "jvm_flags": (*spec.jvm_flags, *settings.jvm_flags),
            "jdk_asked": settings.jdk or spec.jdk_asked,
        }
    )


def bounded(ceilings: Ceilings, values: dict[str, Value]) -> Ceilings:
    """The server's ceilings, with those that are settings at their values."""
    declared = ceilings.model_dump(exclude_none=True)
    return ceilings.model_copy(
        update={name: values[name] for name in declared if type(values.get(name)) is int}
    )


def _number(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
