"""An explanation as the report of the laboratory takes it: blocks, the chapter of a page, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import Field, TypeAdapter

from prony.report.cell_view import CellView
from prony.report.out import Out
from prony.report.result import Explained
from prony_explain.budget import Budget
from prony_explain.cost import ProfilerCost
from prony_explain.difference import Difference
from prony_explain.explanation import Allocated, Explanation
from prony_explain.flame import SCRIPT
from prony_explain.report import chapter, tables
from prony_explain.slow import SlowRequests


class ExplanationOut(Out):
    """Where the CPU time of a server's requests goes, of one more trial with a profiler."""

    server: str
    where: str = Field(description="workload and load, where a part explains several")
    profiler: str = Field(description="name and version; empty where none could be used")
    event: str
    cost: ProfilerCost = Field(description="what the profiler changed, as shares")
    budget: Budget | None = Field(description="CPU time per request by part; the parts add up to cpu_us")
    per_request: dict[str, float] = Field(
        description="counters of the explained trial per request, but for collections_per_1000"
    )
    allocated: list[Allocated] = Field(description="the classes of which most bytes were allocated")
    slow: SlowRequests | None = Field(
        default=None, description="what ran beside the slowest requests, as shares; null: not known"
    )
    missing: list[str] = Field(description="what could not be said, and what it would take")


def explained(cells: Sequence[CellView]) -> Explained | None:
    """Of the cells that have an explained trial; None where no cell has one."""
    view = tables.explanations(cells)
    if view is None:
        return None
    return Explained(
        blocks=tuple(tables.blocks(view)),
        servers=[_out(one) for one in view.servers],
        differences=[_json(Difference, one) for one in view.differences],
        items=partial(chapter.items, view, cells),
        lead=chapter.LEAD,
        script=SCRIPT,
    )


def _out(one: Explanation) -> dict[str, Any]:
    made = ExplanationOut(
        server=one.server,
        where=one.where,
        profiler=one.profiler,
        event=one.event,
        cost=one.cost,
        budget=one.budget,
        per_request=dict(one.per_request),
        allocated=list(one.allocated),
        slow=one.slow,
        missing=list(one.missing),
    )
    return made.model_dump(mode="json", by_alias=True)


def _json(kind: type[Difference], value: Difference) -> dict[str, Any]:
    found: dict[str, Any] = TypeAdapter(kind).dump_python(value, mode="json", by_alias=True)
    return found
