"""Entries of a workload, where a test expects requests and no blocks."""

from __future__ import annotations

from collections.abc import Sequence

from prony.plan.step import Block, Step


def requests(entries: Sequence[Step | Block]) -> tuple[Step, ...]:
    """The same, all of them requests."""
    steps = tuple(entry for entry in entries if isinstance(entry, Step))
    assert len(steps) == len(entries), "there is a block among them"
    return steps
