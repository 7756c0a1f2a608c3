"""CPU time per request as tables and sentences: cost of the profiler, budget by part, differences of pairs,
counters. Pure, except that `explanations` reads rules from the catalogue.
"""

from __future__ import annotations

from collections.abc import Sequence

from prony.numbers import milliseconds
from prony.plan.catalogue_roots import roots
from prony.report.blocks import Block, Column, Lines, Row, Section, Table, TableCell
from prony.report.cell_view import HEADLINE, CellView, TrialView
from prony_explain.before import against_before
from prony_explain.budget import PartCost
from prony_explain.cost import TrialCost
from prony_explain.difference import WITNESSES
from prony_explain.explanation import ExplanationView, Measured, differences, explain
from prony_explain.per_request import of_trial
from prony_explain.rules import Part, rules_for
from prony_explain.slow import NAMES, Beside, Lock, requests_of, whole_percent

CPU = "server_cpu_us_per_request"
LEAST_NAMED = 0.01
"""Packages and subsystems with a smaller share of the cost are not listed."""
MOST_NAMED = 5
"""Packages per part."""


def explanations(cells: Sequence[CellView]) -> ExplanationView | None:
    """Of the cells with an explained trial; None if there are none."""
    cells = [cell for cell in cells if cell.explained]
    several = len({(c.cell.trial.workload.name, c.cell.trial.load_name) for c in cells}) > 1
    servers = []
    for cell in cells:
        trial = cell.explained[-1]
        profile = trial.record.evidence.profile
        measured = Measured(
            list(map(_trial_cost, cell.counting)), _trial_cost(trial), of_trial(trial.record.evidence)
        )
        runtime = profile.runtime if profile is not None else "native"
        servers.append(
            explain(
                cell.cell.server,
                profile,
                rules_for(runtime, cell.cell.server, roots("servers")),
                measured,
                where=f"{cell.cell.trial.workload.name}, {cell.cell.trial.load_name}" if several else "",
                fault=trial.record.failure or "",
                requests=requests_of(trial.record.evidence.engine, profile),
            )
        )
    return ExplanationView(tuple(servers), differences(servers)) if servers else None


def _trial_cost(trial: TrialView) -> TrialCost:
    return TrialCost(trial.figure(HEADLINE), trial.figure(CPU), against_before(trial.record.evidence))


def blocks(view: ExplanationView | None) -> list[Block]:
    """The blocks of a terminal and of a page."""
    if view is None:
        return []
    made: list[Block | None] = [
        cost_lines(view),
        budget_table(view),
        difference_lines(view),
        witness_table(view),
        slow_lines(view),
        slow_table(view),
        lock_table(view),
        missing_lines(view),
    ]
    return [block for block in made if block is not None]


def cost_lines(view: ExplanationView) -> Lines:
    """Cost of each profiler: first, as it qualifies the rest."""
    lines = []
    for server in view.servers:
        if server.profiler:
            event = f" ({server.event})" if server.event else ""
            lines.append(f"{server.named}: {server.profiler}{event}; {server.cost.sentence}")
    return Lines(
        "Explanation", tuple(lines), note="one further trial per server with a profiler, in no figure above"
    )


def budget_table(view: ExplanationView) -> Table | None:
    """CPU time per request by part; servers as columns."""
    budgets = {server.named: server.budget for server in view.servers if server.budget is not None}
    if not budgets:
        return None
    rows: list[Row] = []
    for part in Part:
        costs = [next((c for c in budget.parts if c.part is part), None) for budget in budgets.values()]
        if any(costs):
            rows.append(Row(part.value, tuple(map(_cost, costs))))
            rows += _named(part, costs)
    whole = tuple(
        TableCell(f"{budget.cpu_us:.1f}", _between(budget.low_us, budget.high_us))
        for budget in budgets.values()
    )
    rows.append(Row("CPU time per request", whole))
    return Table(
        tuple(map(Column, budgets)),
        (Section(tuple(rows)),),
        title="CPU time per request by part",
        note=f"µs; mean of the measured trials × shares of the profile, 95 %{_costly(view)}",
        heading="Part",
    )


def _named(part: Part, costs: Sequence[PartCost | None]) -> list[Row]:
    """Packages and subsystems of a part, descending by cost."""
    most: dict[str, float] = {}
    for cost in costs:
        for place in cost.names if cost is not None else ():
            if place.name and place.share >= LEAST_NAMED:
                most[place.name] = max(most.get(place.name, 0.0), place.us)
    names = sorted(most, key=lambda name: -most[name])[:MOST_NAMED]
    rows = []
    for name in names if names != [part.value] else ():
        values = [
            next((place.us for place in cost.names if place.name == name), 0.0) if cost is not None else 0.0
            for cost in costs
        ]
        rows.append(Row(f"· {name}", tuple(TableCell(f"{us:.1f}" if us else "–") for us in values)))
    return rows


def _cost(cost: PartCost | None) -> TableCell:
    return (
        TableCell("–") if cost is None else TableCell(f"{cost.us:.1f}", _between(cost.low_us, cost.high_us))
    )


def _between(low: float | None, high: float | None) -> str:
    return f"{low:.1f} to {high:.1f}" if low is not None and high is not None else ""


def difference_lines(view: ExplanationView) -> Lines | None:
    """A sentence per pair."""
    lines = tuple(f"{d.where}: {d.sentence}" if d.where else d.sentence for d in view.differences)
    note = f"a pair's intervals are simultaneous{_costly(view)}"
    return Lines("Differences in CPU time per request", lines, note=note, marked=True) if lines else None


def witness_table(view: ExplanationView) -> Table | None:
    """Counters per request, of the explained trials."""
    servers = [server for server in view.servers if server.per_request]
    rows = [
        Row(
            words.removesuffix(" per request"),
            tuple(
                TableCell(f"{server.per_request[name]:,.{decimals}f}" if name in server.per_request else "–")
                for server in servers
            ),
        )
        for name, (words, decimals) in WITNESSES.items()
        if any(name in server.per_request for server in servers)
    ]
    if not rows:
        return None
    columns = tuple(Column(server.named) for server in servers)
    return Table(
        columns,
        (Section(tuple(rows)),),
        title="Per request",
        note="counters of the kernel, the runtime and the engine in the explained trials",
    )


def slow_lines(view: ExplanationView) -> Lines | None:
    """Events more frequent than by chance during each server's slowest requests."""
    lines = tuple(
        f"{server.named}: {sentence}"
        for server in view.servers
        if server.slow is not None
        for sentence in server.slow.sentences
    )
    note = "by chance: intervals of the same lengths anywhere in the window; no cause of any single request"
    return Lines("Slow requests", lines, note=note, marked=True) if lines else None


def slow_table(view: ExplanationView) -> Table | None:
    """Shares of the slowest requests during each kind of event, observed and by chance."""
    servers = [server for server in view.servers if server.slow is not None and server.slow.beside]
    events = [{b.kind: b for b in server.slow.beside} for server in servers if server.slow is not None]
    rows = tuple(
        Row(name, tuple(_beside(of.get(kind)) for of in events))
        for kind, name in NAMES.items()
        if any(kind in of for of in events)
    )
    if not rows:
        return None
    return Table(
        tuple(Column(server.named) for server in servers),
        (Section(rows),),
        title="Events during the slowest requests",
        note="share of the slowest 0.1 %, 95 % over all rows, and the share by chance",
        heading="Event",
    )


def _beside(event: Beside | None) -> TableCell:
    if event is None:
        return TableCell("–")
    if not event.events:
        return TableCell("no event")
    low, high, chance = map(whole_percent, (event.low, event.high, event.chance))
    return TableCell(f"{whole_percent(event.share)} %", f"{low} to {high}; by chance {chance} %")


def lock_table(view: ExplanationView) -> Table | None:
    """Locks waited for during the slowest requests."""
    locks = {
        server.named: {lock.name: lock for beside in server.slow.beside for lock in beside.locks}
        for server in view.servers
        if server.slow is not None
    }
    servers = [named for named, of in locks.items() if of]
    names = dict.fromkeys(name for of in locks.values() for name in of)
    if not servers:
        return None
    rows = (Row(name, tuple(_lock(locks[named].get(name)) for named in servers)) for name in names)
    return Table(
        tuple(map(Column, servers)),
        (Section(tuple(rows)),),
        title="Waits for locks during the slowest requests",
        note="share of the requests in the last slice of the window, where waits are recorded; waits of at "
        "least half a request's time",
        heading="Lock and where",
    )


def _lock(lock: Lock | None) -> TableCell:
    if lock is None:
        return TableCell("–")
    return TableCell(
        f"{whole_percent(lock.share)} %", f"{lock.waits:,} waits, up to {milliseconds(lock.longest_ms)}"
    )


def missing_lines(view: ExplanationView) -> Lines | None:
    """Caveats, each with the servers that it applies to."""
    of: dict[str, list[str]] = {}
    for server in view.servers:
        for what in server.missing:
            of.setdefault(what, []).append(server.named)
    lines = tuple(f"{_listed(names)}: {what}" for what, names in of.items())
    return Lines("Not explained", lines, style="yellow") if lines else None


def _costly(view: ExplanationView) -> str:
    """Note on servers whose profiler was costly."""
    names = [server.named for server in view.servers if server.budget is not None and server.cost.costly]
    return f"; the profiler changed the server by more than 10 %: {_listed(names)}" if names else ""


def _listed(names: Sequence[str]) -> str:
    """Joined names; by semicolons if they contain commas."""
    return ("; " if any("," in name for name in names) else ", ").join(names)
