"""An explanation as input of the report: blocks, chapter, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import Field, TypeAdapter

from prony.report.cell_view import CellView
from prony.report.out import Out
from prony.report.result import Drawn, Explained
from prony_explain.budget import Budget
from prony_explain.cost import ProfilerCost
from prony_explain.difference import Difference
from prony_explain.explanation import Allocated, Explanation, ExplanationView
from prony_explain.flame import SCRIPT
from prony_explain.report import chapter, tables
from prony_explain.slow import SlowRequests


class ExplanationOut(Out):
    """CPU time per request of a server by part, from a further trial with a profiler."""

    server: str
    where: str = Field(description="workload and load; empty if the part has a single one")
    profiler: str = Field(description="name and version; empty without a profiler")
    event: str
    cost: ProfilerCost = Field(description="changes caused by the profiler, as shares")
    budget: Budget | None = Field(description="CPU time per request by part; the parts add up to cpu_us")
    per_request: dict[str, float] = Field(
        description="counters of the explained trial per request, except collections_per_1000"
    )
    allocated: list[Allocated] = Field(description="classes with the most allocated bytes")
    slow: SlowRequests | None = Field(
        default=None, description="events during the slowest requests, as shares; null: unknown"
    )
    missing: list[str] = Field(description="caveats: what is missing, and how to get it")


def explained(cells: Sequence[CellView]) -> Explained | None:
    """Of the cells with an explained trial; None if there are none."""
    view = tables.explanations(cells)
    if view is None:
        return None
    made = _data(view)
    return Drawn(
        **vars(made), chapter=partial(chapter.explained_chapter, view, cells, made.blocks), script=SCRIPT
    )


def stored(cells: Sequence[CellView]) -> dict[str, Any] | None:
    """The same as plain JSON values, with its pictures, for a laboratory without this package."""
    view = tables.explanations(cells)
    if view is None:
        return None
    made = replace(_data(view), pictures=chapter.pictures(view, cells))
    plain: dict[str, Any] = TypeAdapter(Explained).dump_python(made, mode="json")
    return plain


def _data(view: ExplanationView) -> Explained:
    return Explained(
        blocks=tuple(tables.blocks(view)),
        servers=tuple(_out(server) for server in view.servers),
        differences=tuple(
            TypeAdapter(Difference).dump_python(pair, mode="json", by_alias=True) for pair in view.differences
        ),
    )


def _out(server: Explanation) -> dict[str, Any]:
    counters, classes, caveats = dict(server.per_request), list(server.allocated), list(server.missing)
    out = ExplanationOut.filled(server, per_request=counters, allocated=classes, missing=caveats)
    return out.model_dump(mode="json", by_alias=True)
