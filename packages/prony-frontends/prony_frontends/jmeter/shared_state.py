"""Refuses state that JMeter's thread groups share and Prony's groups do not, where that would matter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from prony.plan.step import Entry
from prony_frontends.jmeter import rows
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.timers import ALL, GROUP_SHARED

SHARED = re.compile(r"\$\{(?:next )?(sequence name=\w+(?![^}]*per=user)|rows\d+)\b")


def check_shared_state(
    outside: Sequence[JmxNode], before: Sequence[JmxNode], main: Sequence[JmxNode], after: Sequence[JmxNode]
) -> None:
    """Checks rows and rates. Raises Refused."""
    every = [*before, *main, *after]
    if len(every) == 1:
        return
    for node in _of(outside, "CSVDataSet"):
        if before or after:
            raise node.refused(
                "rows that the load goes on with where a setUp group has stopped, and a tearDown group where "
                "the load has",
                "move it into the thread group that uses it",
                "shared",
            )
        if rows.share_mode(node) == rows.EACH_GROUP:
            raise node.refused(
                "own rows for each of several groups", "copy it into each, or share them", "shared"
            )
    for node in _of([*outside, *every], "ConstantThroughputTimer"):
        mode = node.value("calcMode")
        if mode == str(ALL):
            raise node.refused(
                "a rate shared by threads of several groups", "share it within each group", "shared"
            )
        if mode == str(GROUP_SHARED) and any(node is outside_node for outside_node in outside):
            raise node.refused(
                "a rate for each of several groups", "move a timer into each of them", "shared"
            )


def goes_on(one: Sequence[Entry], other: Sequence[Entry]) -> bool:
    """Whether a number or the rows of a file would continue from `one` to `other`."""
    return bool(_shared(one) & _shared(other))


def _shared(entries: Sequence[Entry]) -> set[str]:
    return {name for entry in entries for name in SHARED.findall(entry.model_dump_json())}


def _of(nodes: Sequence[JmxNode], tag: str) -> Iterator[JmxNode]:
    for top in nodes:
        if top.enabled:
            yield from (node for node in top.everything() if node.tag == tag)
