"""Marks names of requests, transactions and samples with their element's number during translation."""

from __future__ import annotations

from collections.abc import Sequence

from prony.plan.step import Entry, Step
from prony.plan.workload import Workload
from prony_frontends.jmeter.jmx import JmxNode

MARK = "\x1e"  # in no XML, and no NUL, which names may not have


def number(top: JmxNode) -> None:
    """Numbers the elements of the plan."""
    for place, node in enumerate(top.everything(), 1):
        node.number = place


def marked(name: str, node: JmxNode) -> str:
    """The name with the element's number."""
    return f"{name}{MARK}{node.number}"


def parted(name: str) -> tuple[str, int]:
    """Name and number of the element; 0 without a mark."""
    plain, _, place = name.partition(MARK)
    return plain, int(place or 0)


def unmarked(workload: Workload) -> Workload:
    """The workload without marks."""
    walks = tuple(walk.model_copy(update={"steps": _unmarked(walk.steps)}) for walk in workload.scenarios)
    return workload.model_copy(update={"steps": _unmarked(workload.steps), "scenarios": walks})


def _unmarked(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    return tuple(map(_alone, entries))


def _alone(entry: Entry) -> Entry:
    if isinstance(entry, Step):
        return entry.model_copy(update={"name": parted(entry.name)[0]})
    name, note = entry.transaction, entry.note
    return entry.model_copy(
        update={
            "transaction": None if name is None else parted(name)[0],
            "note": None if note is None else parted(note)[0],
            "steps": _unmarked(entry.steps),
            "otherwise": _unmarked(entry.otherwise),
        }
    )
