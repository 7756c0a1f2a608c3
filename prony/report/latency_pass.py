"""The value of one table of the second pass. Must not know how it comes about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LatencyPass:
    """One table: a row per server, and what follows pair by pair."""

    title: str
    experiment_id: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]
