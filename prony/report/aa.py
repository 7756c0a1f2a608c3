"""A/A results of this host in words, and the stored A/A experiment that fits a comparison. Pure."""

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


def words(rate: FalseDifferences) -> list[str]:
    """The result of an A/A experiment, in sentences."""
    sentences = [
        f"The server was called different from itself in {rate.different:,} of {rate.experiments:,} "
        f"experiments of {rate.each} trials per name, drawn from {rate.trials} trials: "
        f"{rate.share * 100:.1f} %. The method promises at most 5 % of independent experiments.",
        _of_independent(rate),
    ]
    if rate.half_width is not None:
        sentences.append(
            f"Differences below about {rate.half_width * 100:.1f} % do not show with {rate.each} trials "
            "per server (median half-width of the intervals)."
        )
    return sentences


def record_words(r: OnRecord) -> str:
    """The A/A experiment on record, as a line of a comparison."""
    aa = r.found
    width = f"; half-width {aa.half_width * 100:.1f} %" if aa.half_width is not None else ""
    return (
        f"A/A on this host ({r.server}, {r.workload}, {r.created[:10]}, {r.id}): called different "
        f"from itself in {aa.share * 100:.1f} % of {aa.experiments:,} experiments of {aa.each} "
        f"trials{width}. {_of_independent(aa)}"
    )


def _of_independent(rate: FalseDifferences) -> str:
    only = "1 experiment" if rate.independent == 1 else f"{rate.independent} experiments"
    return (
        f"The experiments share trials: {rate.trials} trials make {only} without reusing any, which "
        f"leaves {rate.low * 100:.1f} to {rate.high * 100:.1f} % open (95 %)."
    )


def fitting(rows: Iterable[ExperimentRow], fingerprint: str, cells: Sequence[Cell]) -> ExperimentRow | None:
    """The newest finished A/A experiment of this host, closest to these cells; `rows`: newest first."""
    # A gate tells builds of the same name apart by role, such as tomcat@base.
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
            continue  # of another version: unreadable
        ranked.setdefault(0 if of in mine else 1 if of[0] in servers else 2, row)
    return ranked[min(ranked)] if ranked else None
