"""How profilers write their samples and events as evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from prony.evidence.profile import Samples, Sampling, Stack

KERNEL_FRAME = "_[k]"
"""Suffix of a kernel frame."""
MOST_EVENTS = 1000
"""Most events per kind: the longest, or the first of those without a length."""


def sampling(
    unit: Literal["samples", "bytes", "ns"], slices: Iterable[tuple[float, float, Mapping[Stack, int]]]
) -> Sampling:
    """A `Sampling` of slices (start s, end s, stack -> weight); empty stacks are left out."""
    frames: dict[str, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    parts: list[Samples] = []
    for start_s, end_s, stacks in slices:
        weights: dict[int, int] = {}
        for stack, weight in stacks.items():
            node = -1
            for frame in stack:
                node = nodes.setdefault((node, frames.setdefault(frame, len(frames))), len(nodes))
            if node >= 0 and weight:
                weights[node] = weights.get(node, 0) + weight
        parts.append(Samples(start_s=start_s, end_s=end_s, weights=weights))
    return Sampling(
        unit=unit,
        frames=tuple(frames),
        parents=tuple(parent for parent, _ in nodes),
        names=tuple(name for _, name in nodes),
        slices=tuple(parts),
    )
