"""What A/A experiments of this host came to, in words, and which stored one fits a comparison. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prony.compare.false_differences import FalseDifferences
from prony.plan.cell import Cell
from prony.store import ExperimentRow

COMMAND = "aa"


@dataclass(frozen=True, slots=True)
class OnRecord:
    """A stored A/A experiment of the host that a comparison ran on."""

    id: str
    created: str
    """ISO 8601."""
    server: str
    workload: str
    found: FalseDifferences


def words(found: FalseDifferences) -> list[str]:
    """What an A/A experiment came to, sentence by sentence."""
    said = [
        f"The server was called different from itself in {found.different:,} of {found.experiments:,} "
        f"experiments of {found.each} trials per name, drawn from {found.trials} trials: "
        f"{found.share * 100:.1f} %. The method promises at most 5 % of independent experiments.",
        _of_independent(found),
    ]
    if found.half_width is not None:
        said.append(
            f"Differences below about {found.half_width * 100:.1f} % do not show with {found.each} trials "
            "per server (median half-width of the intervals)."
        )
    return said


def record_words(one: OnRecord) -> str:
    """The A/A experiment on record, as a line of a comparison."""
    found = one.found
    width = f"; half-width {found.half_width * 100:.1f} %" if found.half_width is not None else ""
    return (
        f"A/A on this host ({one.server}, {one.workload}, {one.created[:10]}, {one.id}): called different "
        f"from itself in {found.share * 100:.1f} % of {found.experiments:,} experiments of {found.each} "
        f"trials{width}. {_of_independent(found)}"
    )


def _of_independent(found: FalseDifferences) -> str:
    only = "1 experiment" if found.independent == 1 else f"{found.independent} experiments"
    return (
        f"The experiments share trials: {found.trials} trials make {only} without using one twice, which "
        f"leaves {found.low * 100:.1f} to {found.high * 100:.1f} % open (95 %)."
    )


def fitting(rows: Iterable[ExperimentRow], fingerprint: str, cells: Sequence[Cell]) -> ExperimentRow | None:
    """The newest finished A/A experiment of this host, as like these cells as can be; `rows`: newest first"""
    # Of two builds of one name a gate knows them by their roles, such as tomcat@base.
    mine = {(cell.server.partition("@")[0], cell.trial.workload.name) for cell in cells}
    servers = {server for server, _ in mine}
    ranked: dict[int, ExperimentRow] = {}
    for row in rows:
        if row.spec.get("command") != COMMAND or row.status != "finished":
            continue
        if row.fingerprint.key != fingerprint:
            continue
        try:
            (cell, *_) = row.spec["cells"]
            of = (str(cell["server"]), str(cell["trial"]["workload"]["name"]))
        except (LookupError, TypeError, ValueError):
            continue  # of another version: what it says is not known
        ranked.setdefault(0 if of in mine else 1 if of[0] in servers else 2, row)
    return ranked[min(ranked)] if ranked else None
