"""Metric families as text: OpenMetrics 1.0 for scrapers that accept it and for `promtool tsdb create-blocks-
from openmetrics`, Prometheus 0.0.4 for the rest. Pure.

Sources: the OpenMetrics 1.0 specification; Prometheus, "Exposition formats".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
CLASSIC = "text/plain; version=0.0.4; charset=utf-8"
"""Content types of the two formats."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value. `suffix` is appended to the family's name (`_total`, `_sum`, `_count`)."""

    value: float
    labels: Mapping[str, str]
    suffix: str = ""
    at_s: float | None = None
    """Unix time; None: the time of the scrape."""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. The name carries its base unit (`_seconds`, `_bytes`, `_ratio`) and no `_total`."""

    name: str
    kind: Literal["gauge", "counter", "summary", "info"]
    help: str
    samples: tuple[Sample, ...]

    @property
    def unit(self) -> str:
        """The base unit that the name ends with; empty for a plain number."""
        last = self.name.rpartition("_")[2]
        return last if last in {"seconds", "bytes", "ratio"} else ""


def openmetrics(families: Iterable[Family]) -> Iterator[str]:
    """OpenMetrics text, one string per family, ending with `# EOF`."""
    for family in families:
        if not family.samples:
            continue
        lines = [f"# TYPE {family.name} {family.kind}"]
        if family.unit:
            lines.append(f"# UNIT {family.name} {family.unit}")
        lines.append(f"# HELP {family.name} {_escaped(family.help)}")
        lines += [_line(family, sample, 1) for sample in family.samples]
        yield "\n".join(lines) + "\n"
    yield "# EOF\n"


def classic(families: Iterable[Family]) -> Iterator[str]:
    """Prometheus 0.0.4, a string per family: info is a gauge, counters get `_total`, times are in ms."""
    for family in families:
        if not family.samples:
            continue
        suffix = {"counter": "_total", "info": "_info"}.get(family.kind, "")
        kind = "gauge" if family.kind == "info" else family.kind
        lines = [
            f"# HELP {family.name}{suffix} {_escaped(family.help, quotes=False)}",
            f"# TYPE {family.name}{suffix} {kind}",
        ]
        lines += [_line(family, sample, 1000) for sample in family.samples]
        yield "\n".join(lines) + "\n"


def negotiated(accept: str) -> tuple[str, bool]:
    """The content type for an Accept header; True for OpenMetrics."""
    wanted = "application/openmetrics-text" in accept.lower()
    return (OPENMETRICS if wanted else CLASSIC), wanted


def _line(family: Family, sample: Sample, per_s: int) -> str:
    suffix = sample.suffix or {"counter": "_total", "info": "_info"}.get(family.kind, "")
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
    named = f"{family.name}{suffix}{{{labels}}}" if labels else f"{family.name}{suffix}"
    if sample.at_s is None:
        return f"{named} {_number(sample.value)}"
    at = f"{sample.at_s:.3f}" if per_s == 1 else str(round(sample.at_s * per_s))
    return f"{named} {_number(sample.value)} {at}"


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
