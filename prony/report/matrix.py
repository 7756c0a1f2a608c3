"""Cells of several workloads or loads as a table, a row per cell. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from prony.report.blocks import Block, Chapter, Column, Lines, Row, Section, Table, TableCell
from prony.report.cell_view import HEADLINE, CellView
from prony.report.comparison import Compared, conforming_cell, figure_cell, says_something
from prony.report.history import published_lines
from prony.report.intervals import failed_lines
from prony.report.labels import JVM, OFFERED, PERCENTILES, SERVICE_TIMES, SESSION_TIMES, SESSIONS, named
from prony.report.pairs import pair_lines
from prony.report.result import PartView
from prony.report.shape import left_out

COLUMNS = (
    *(HEADLINE, "per_user_per_s", "users_simulated"),
    *("mean_ms", *PERCENTILES, "max_ms", *SERVICE_TIMES, "think_actual_share"),
    *("connections_per_request", "handshakes_per_request"),
    *(*SESSIONS, *SESSION_TIMES, "session_max_ms"),
    *(*OFFERED, "failed_share"),
    *("published_requests_per_s", "published_mean_ms"),
    *(*JVM, "time_to_ready_s"),
    *("server_cpu_share", "client_cpu_share"),
)
"""Figures in printing order; a figure without values in a part is omitted."""
INFORMATIVE = (
    *(HEADLINE, "mean_ms", "p99_ms", "handshakes_per_request", "sessions_completed", "users_simulated"),
    *("per_user_per_s", "p50_ms", "session_p50_ms", "think_actual_share", "failed_share", "p999_ms"),
    "connections_per_request",
)
"""Where there is not room for all columns, these come first."""
INFORMATIVE_OPEN = ("p99_ms", "p50_ms", "p999_ms", HEADLINE)
"""At a given rate the times are the question."""


class Matrix(Compared):
    """Several workloads or loads, each question with servers of its own."""

    charts = ("sweeps", "bounds", "times")

    def blocks(self, part: PartView) -> list[Block]:
        made: list[Block] = [cells_table(part), *failed_lines(part.cells)] if part.cells else []
        lines = published_lines(part)
        if lines:
            made.append(Lines("Published", lines, note="other hardware, other versions: compare shapes only"))
        return [*made, *pair_lines(part, part.pairs)]

    def chapters(self, part: PartView) -> list[Chapter | str]:
        blocks = self.everything(part)
        tables = [block for block in blocks if isinstance(block, Table)]
        lists = [block for block in blocks if isinstance(block, Lines)]
        lead = (
            "Open loop: requests are sent at this rate whether or not the server keeps up. Latency counts "
            "from the intended send. Median over trials, smallest and largest below."
        )
        items = (*tables, *lists, *left_out(part))
        return [Chapter("results", "Results", items, lead if part.part.follows else ""), "sockets"]


def columns(part: PartView) -> tuple[str, ...]:
    """The figures worth a column here."""
    left_out = {"per_user_per_s": not part.swept, "p999_ms": not part.is_open}
    return tuple(name for name in COLUMNS if not left_out.get(name) and says_something(part, name))


def cells_table(part: PartView) -> Table:
    """A row per cell: load, server (workload), figures, trials that conform."""
    several = len(part.workloads) > 1
    chosen = columns(part)
    ranks = _ranks(part, chosen)
    head = (
        *([Column("workload", number=False)] if several else []),
        Column("server", number=False),
        *(Column(named(name), rank=ranks[name]) for name in chosen),
        Column("trials", number=False),
    )
    rows = tuple(
        Row(
            view.cell.trial.load_name,
            (
                *([TableCell(view.cell.trial.workload.name)] if several else []),
                TableCell(view.cell.server),
                *(figure_cell(name, view) for name in chosen),
                cell_trials(view),
            ),
            server=view.cell.server,
        )
        for view in part.cells
    )
    return Table(head, (Section(rows),), heading="load", caption=f"Cells of {part.part.title}")


def _ranks(part: PartView, chosen: Iterable[str]) -> dict[str, int]:
    informative = (*INFORMATIVE_OPEN, *INFORMATIVE) if part.is_open else INFORMATIVE
    order = list(dict.fromkeys((*(name for name in informative if name in chosen), *chosen)))
    return {name: place + 1 for place, name in enumerate(order)}


def cell_trials(view: CellView) -> TableCell:
    """How many trials conform, what bound the throughput, and what was repeated."""
    if view.conforms is None:
        return TableCell("not run yet")
    bound = [f"bound by {view.bound_words}"] if view.bound_words else []
    return conforming_cell(view, *bound)
