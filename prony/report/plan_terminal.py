"""The report of a plan on a terminal: verdict, then a table per part, what the checks found, what was left
out.

Must not know where the view came from.
"""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prony.judge.finding import Status
from prony.report.labels import rounded
from prony.report.plan_view import CellView, PartView, PlanView, heading
from prony.report.style import STATUS_STYLE
from prony.report.wording import counted

MOST_WIDTH = 200
FIGURE_WIDTH, VERDICT_WIDTH, GAP = 9, 18, 2
TELLING = (
    "requests_per_s",
    "mean_ms",
    "p99_ms",
    "handshakes_per_request",
    "sessions_completed",
    "users_simulated",
    "per_user_per_s",
    "p50_ms",
    "session_p50_ms",
    "think_actual_share",
    "failed_share",
    "connections_per_request",
)
"""Where there is not room for all columns, these come first."""


def render_plan(view: PlanView, console: Console) -> None:
    """Print the whole report of a plan."""
    console.print()
    console.print(
        Text.assemble(
            (view.status.value.upper(), f"bold {STATUS_STYLE[view.status]}"), "  ", (view.words, "bold")
        )
    )
    console.print(Text(f"{view.title} · {view.created:%Y-%m-%d %H:%M} · {view.id}", style="dim"))
    if view.quick:
        console.print(Text("quick: a first look; every figure is marked.", style="yellow"))
    for sentence in (*view.plan.changes, *view.warnings):
        console.print(Text(f"Note: {sentence}", style="yellow"))
    for part in view.parts:
        _part(view, part, console)
    console.print()


def _part(view: PlanView, part: PartView, console: Console) -> None:
    console.print()
    console.print(Text.assemble((part.part.title, "bold"), (f"  {part.part.name}", "dim")))
    if part.part.note:
        console.print(Text(part.part.note, style="dim"))
    if part.cells:
        console.print(_table(view, part, _fitting(part, console.width)))
    _history(part, console)
    for where, pair in part.pairs:
        _indented(console, Text(f"{where}: {pair.sentence}{_mark(view)}"), 2)
    for concern in part.concerns:
        finding = concern.finding
        status = (finding.status.value, STATUS_STYLE[finding.status])
        head = Text.assemble(status, (f" {finding.check}", "bold"), (f"  {concern.where}", "dim"))
        _indented(console, head, 2)
        for reason in concern.told:
            _indented(console, Text(reason), 4)
        if concern.more:
            _indented(console, Text(f"… and in {counted(concern.more, 'more cell')}", style="dim"), 4)
        if finding.advice:
            _indented(console, Text.assemble(("→ ", "bold"), finding.advice), 4)
    reasons: dict[str, list[str]] = {}
    for one in part.skipped:
        reasons.setdefault(one.why, []).append(one.cell)
    for why, cells in reasons.items():
        count = f"{len(cells)} cells, such as {cells[0]}" if len(cells) > 1 else cells[0]
        _indented(console, Text(f"not run: {count}: {why}", style="yellow"), 2)


def _indented(console: Console, text: Text, columns: int) -> None:
    """Text whose further lines begin where the first one does."""
    console.print(Padding(text, (0, 0, 0, columns), expand=False))


def _fitting(part: PartView, width: int) -> tuple[str, ...]:
    """The columns that fit a terminal of this width, the most telling first; the page has all of them."""
    names = max((len(cell.cell.trial.load_name) + len(cell.cell.server) for cell in part.cells), default=0)
    names += max(map(len, part.workloads)) + GAP if len(part.workloads) > 1 else 0
    room = (min(width, MOST_WIDTH) - names - VERDICT_WIDTH - 2 * GAP) // (FIGURE_WIDTH + GAP)
    there = [name for name in TELLING if name in part.columns]
    there += [name for name in part.columns if name not in there]
    chosen = there[: max(2, room)]
    return tuple(name for name in part.columns if name in chosen)


def _history(part: PartView, console: Console) -> None:
    """What others printed, a line per cell that has any."""
    told = [cell for cell in part.cells if cell.published]
    if told:
        console.print(Text("  published, on other hardware:", style="dim"))
    for cell in told:
        figures = "; ".join(f"{heading(name)} {text}" for name, text in cell.published)
        where = f"{cell.cell.trial.workload.name}, " if len(part.workloads) > 1 else ""
        line = f"  {where}{cell.cell.trial.load_name}, {cell.cell.server}: {figures}"
        console.print(Text(line, style="dim"))


def _table(view: PlanView, part: PartView, columns: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    several = len(part.workloads) > 1
    for name in (["workload"] if several else []) + ["load", "server"]:
        table.add_column(name, overflow="fold", no_wrap=name != "server")
    for figure in columns:
        table.add_column(escape(heading(figure)), justify="right", min_width=FIGURE_WIDTH)
    table.add_column("verdict", overflow="fold", min_width=len("offered-load)"))
    for cell in part.cells:
        row = [cell.cell.trial.workload.name] if several else []
        row += [cell.cell.trial.load_name, escape(cell.cell.server)]
        row += [_value(view, cell, figure) for figure in columns]
        row.append(_verdict(cell))
        table.add_row(*row)
    return table


def _value(view: PlanView, cell: CellView, figure: str) -> str:
    found = cell.figure(figure)
    if found is None:
        return "–" if cell.counting or not cell.trials else "no figure"
    return rounded(figure, found.median) + _mark(view)


def _verdict(cell: CellView) -> str:
    status = cell.status
    if status is None:
        return "not run yet"
    bound = f" (bound by {cell.bound_by})" if cell.bound_by not in ("", "unknown") else ""
    style = STATUS_STYLE[status]
    return f"[{style}]{status.value}[/{style}]{escape(bound) if status is not Status.INVALID else ''}"


def _mark(view: PlanView) -> str:
    return " q" if view.quick else ""
