"""A comparison in tables and sentences: servers as columns, one sentence per pair, published figures beside.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from prony.compare.claim import Claim
from prony.compare.sentence import OBSTACLES
from prony.judge.figures import FIGURE, published_mark
from prony.judge.finding import Kind
from prony.report import aa, gate, levels
from prony.report.blocks import Block, Column, Lines, Row, Section, Table, TableCell
from prony.report.cell_view import HEADLINE, CellView, Spread, TrialView, spread
from prony.report.intervals import between, failed_lines, heading, over_trials
from prony.report.labels import STEADY_OVER_PUBLISHED, label_of, rounded, unit_of
from prony.report.result import PairView, PartView
from prony.report.trial_tables import group_lines, step_blocks
from prony.report.uncertain import bends, good_to
from prony.report.wording import ratio

SERVICE_TIMES = ("service_time_p50_ms", "service_time_p99_ms")
"""Beside times that are counted from elsewhere: from the intended send, or the start of the connect."""
LAYOUT: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "Start-up",
        "a fresh process, before any load",
        (
            "jvm_memory_used_mb",
            "jvm_classes_loaded",
            "jvm_threads_live",
            "time_to_ready_s",
            "start_rss_mib",
        ),
    ),
    (
        "Steady load",
        "over the measured window",
        (HEADLINE, "mean_ms", "p50_ms", "p90_ms", "p99_ms", "p999_ms", *SERVICE_TIMES, "time_to_steady_s"),
    ),
    (
        "Offered",
        "over the measured window",
        ("offered_requests", "completed", "blocked", "due_unsent", "failed_share"),
    ),
    (
        "Sessions",
        "from a user's arrival to the last response",
        (
            "sessions_begun",
            "sessions_completed",
            "session_p50_ms",
            "session_p95_ms",
            "session_p99_ms",
            "session_min_ms",
            "session_max_ms",
        ),
    ),
    (
        "Connections",
        "over the whole run",
        ("connections_per_request", "handshakes_per_request", "resumed_share"),
    ),
    (
        "Cost",
        "over the measured window",
        ("server_cpu_us_per_request", "peak_rss_mib", "requests_per_s_per_gib"),
    ),
    (
        "Backing services",
        "not included in the servers' figures",
        ("service_cpu_us_per_request", "service_cpu_share", "service_rss_mib"),
    ),
    (
        "As the published protocol would print",
        "{n} requests to a fresh process",
        ("published_requests_per_s", "published_mean_ms", STEADY_OVER_PUBLISHED),
    ),
)
ONLY_WHEN_OPEN = frozenset({"offered_requests", "completed", "blocked", "due_unsent"})
ONLY_WHEN_NOT_ZERO = frozenset({"blocked", "due_unsent", "failed_share"})
FEWEST_CONNECTIONS_PER_REQUEST = 0.001
"""With fewer all connections are kept alive, and the figure says nothing."""
EVIDENCE_FIGURES = ("users_simulated", "think_actual_share", "server_cpu_share", "client_cpu_share")


def blocks(part: PartView, pairs: Sequence[PairView] | None = None) -> list[Block]:
    """The table, the pairs (these of them), the published figures, the steps."""
    history = history_table(part)
    return [
        *results(part),
        *pair_lines(part, part.pairs if pairs is None else pairs),
        *([history] if history is not None else []),
        *steps(part),
    ]


def results(part: PartView) -> list[Block]:
    """The groups of users, where there are several, and the table."""
    groups = next((group_lines(trial.record.evidence) for trial in part.trials), [])
    made: list[Block] = [Lines("Groups of users", tuple(groups))] if groups else []
    return [*made, figures_table(part), *failed_lines(part.cells)]


def steps(part: PartView) -> list[Block]:
    """The steps of each server, where the workload has several."""
    return [block for cell in part.cells for block in step_blocks(cell.trials, cell.label)]


def cells_by_server(part: PartView) -> tuple[CellView, ...]:
    """One cell per server, in the order of the plan: what makes a part a comparison."""
    return tuple(part.of(server.address)[0] for server in part.servers)


def value(trial: TrialView, figure: str) -> float | None:
    """A figure of one trial; None when it is absent."""
    if figure == STEADY_OVER_PUBLISHED:
        steady, published = trial.figure(HEADLINE), trial.figure("published_requests_per_s")
        return steady / published if steady is not None and published else None
    return trial.figure(figure)


def spread_of(cell: CellView, figure: str) -> Spread | None:
    """Median, its interval and the range of a figure over the trials that count."""
    if figure != STEADY_OVER_PUBLISHED:
        return cell.figure(figure)
    return spread(value(trial, figure) for trial in cell.counting)


def best(part: PartView, figure: str) -> str | None:
    """The server that the comparison shows to be better than every other one in this figure, if any."""
    for server in (s.address for s in part.servers):
        rivals = {s.address for s in part.servers} - {server}
        beaten = {
            pair.b if pair.a == server else pair.a
            for pair in part.pairs
            if pair.figure == figure and server in (pair.a, pair.b)
            if pair.better == server
        }
        if rivals and rivals <= beaten:
            return server
    return None


MOST_DRAWN = 8
"""Servers of which every pair is drawn or said."""


def drawn_pairs(part: PartView) -> tuple[PairView, ...]:
    """The pairs that are drawn or said: of many servers each beside the best and beside the next one."""
    if len(part.servers) <= MOST_DRAWN or part.layout != "comparison":
        return part.pairs
    figure = part.asked_figure
    known = [
        (f.median, c.cell.server) for c in cells_by_server(part) if (f := spread_of(c, figure)) is not None
    ]
    order = [server for _, server in sorted(known, reverse=not lower_is_better(figure))]
    wanted = {frozenset((order[0], server)) for server in order} if order else set()
    wanted |= set(map(frozenset, pairwise(order)))
    return tuple(pair for pair in part.pairs if frozenset((pair.a, pair.b)) in wanted)


def turned(pair: PairView) -> PairView:
    """The same comparison with the other server first."""

    def inverse(ends: tuple[float | None, float | None]) -> tuple[float | None, float | None]:
        low, high = ends
        return 1 / high if high else None, 1 / low if low else None

    low, high = inverse((pair.low, pair.high))
    worst_low, worst_high = inverse((pair.worst_low, pair.worst_high))
    later_low, later_high = inverse((pair.later_low, pair.later_high))
    return replace(
        pair,
        a=pair.b,
        b=pair.a,
        ratio=1 / pair.ratio if pair.ratio else None,
        low=low,
        high=high,
        worst_low=worst_low,
        worst_high=worst_high,
        later_low=later_low,
        later_high=later_high,
    )


def better_first(pair: PairView) -> PairView:
    """The same comparison with the better server first (without a direction: the larger value first)."""
    if pair.ratio is None or pair.ratio <= 0:
        return pair
    return turned(pair) if ((pair.ratio > 1) if lower_is_better(pair.figure) else (pair.ratio < 1)) else pair


def lower_is_better(figure: str) -> bool:
    """Of times and costs; not of a figure that has no direction."""
    known = FIGURE.get(figure)
    return known is not None and known.higher_is_better is False


CLAIM_WORDS = {
    Claim.SHOWN: "shown",
    Claim.SHOWN_FOR_WINDOW: "shown for this window",
    Claim.EQUIVALENT: "equivalent",
    Claim.OPEN: "open",
}


def published_requests(trials: Sequence[TrialView]) -> int:
    """How many requests to a fresh process the published protocol sends."""
    marks = (published_mark(t.record.evidence) for t in trials)
    return next((mark.requests for mark in marks if mark is not None), 10_000)


def figures_table(part: PartView) -> Table:
    """Servers as columns. A figure that no server has is left out."""
    sections = []
    for title, note, figures in LAYOUT:
        rows = tuple(row for figure in figures if (row := _row(part, figure)) is not None)
        if rows:
            sections.append(Section(rows, title, note.format(n=f"{published_requests(part.trials):,}")))
    shares = [row for figure in EVIDENCE_FIGURES if (row := _row(part, figure)) is not None]
    sections.append(
        Section(
            (_bound_row(part), *shares, *_budget_rows(part), *_drift_row(part), _conforming_row(part)),
            "Evidence",
        )
    )
    columns = tuple(Column(server.address) for server in part.servers)
    shown = heading(spread_of(cell, HEADLINE) for cell in cells_by_server(part))
    return Table(columns, tuple(sections), heading=shown, caption="Results")


def says_something(part: PartView, figure: str) -> bool:
    """Whether a figure that trials may have tells a reader anything in this part."""
    values = [found.median for cell in part.cells if (found := spread_of(cell, figure)) is not None]
    if not values or (figure in ONLY_WHEN_OPEN and not part.is_open):
        return False
    if figure in ONLY_WHEN_NOT_ZERO and not any(values):
        return False
    if figure in SERVICE_TIMES:
        own = figure.removeprefix("service_time_")
        return any(value(t, figure) != value(t, own) for cell in part.cells for t in cell.counting)
    return figure != "connections_per_request" or max(values) > FEWEST_CONNECTIONS_PER_REQUEST


def _row(part: PartView, figure: str) -> Row | None:
    cells = cells_by_server(part)
    spreads = [spread_of(cell, figure) for cell in cells]
    if not says_something(part, figure):
        return None
    winner = best(part, figure)
    made = [
        figure_cell(figure, found, cell, best=cell.cell.server == winner)
        for cell, found in zip(cells, spreads, strict=True)
    ]
    return Row(label_of(figure), tuple(made), unit_of(figure))


def figure_cell(figure: str, found: Spread | None, of: CellView, *, best: bool = False) -> TableCell:
    """Median and range, or why there is none."""
    if found is None:
        return TableCell("–" if of.counting or not of.trials else "no figure")
    many = len(of.counting)
    missing = f", in {found.n} of {many}" if found.n < many else ""
    alone = "one trial" if of.cell.trials > 1 else ""
    return TableCell(
        over_trials(figure, found, found.median), (between(figure, found) or alone) + missing, best
    )


def _bound_row(part: PartView) -> Row:
    return Row("bound by", tuple(TableCell(cell.bound_by or "no figure") for cell in cells_by_server(part)))


def _drift_row(part: PartView) -> list[Row]:
    """Residual drift, over the trials together; nothing where no plateau is claimed."""
    cells = cells_by_server(part)
    horizon_s = next((cell.plateau.horizon_s for cell in cells if cell.plateau is not None), None)
    if horizon_s is None:
        return []
    made = tuple(
        TableCell("–" if c.plateau is None else good_to(c.plateau.low, c.plateau.high)) for c in cells
    )
    return [Row(f"residual drift within {horizon_s:g} s", made)]


def _budget_rows(part: PartView) -> list[Row]:
    """The lines of the budget of the figure that is asked for, a row per source."""
    cells = cells_by_server(part)
    figure = part.asked_figure
    budgets = [{line.source: line for line in cell.budget(figure)} for cell in cells]
    names = dict.fromkeys(name for budget in budgets for name, line in budget.items() if line.bias.counts)
    return [
        Row(
            f"{OBSTACLES.get(name, name)}, {label_of(figure)}",
            tuple(
                TableCell("–" if name not in budget else bends(budget[name].low, budget[name].high))
                for budget in budgets
            ),
        )
        for name in names
    ]


def _conforming_row(part: PartView) -> Row:
    return Row("trials that conform", tuple(conforming_cell(cell) for cell in cells_by_server(part)))


def conforming_cell(cell: CellView) -> TableCell:
    """How many trials conform, and how many were repeated."""
    beside = f"{len(cell.superseded)} repeated" if cell.superseded else ""
    return TableCell(conforming_words(cell), beside, kind=conforming_kind(cell))


def conforming_words(cell: CellView) -> str:
    """5 of 5."""
    return f"{len(cell.counting)} of {len(cell.trials)}"


def conforming_kind(cell: CellView) -> Kind:
    """How that is to be drawn."""
    if not cell.counting:
        return Kind.NOT_CONFORMING
    return Kind.FINE if len(cell.counting) == len(cell.trials) else Kind.BUDGET


def pair_lines(part: PartView, pairs: Sequence[PairView]) -> list[Lines]:
    """A sentence per pair about what the part asks, a line per pair about everything else."""
    asked = asked_figures(part)
    of_asked = [pair for pair in pairs if pair.figure in asked]
    first, said_once = in_words(of_asked)
    others = tuple(
        ratio_line(pair)
        for pair in map(better_first, (p for p in pairs if p.figure not in asked))
        if pair.ratio is not None
    )
    every = sum(pair.figure in asked for pair in part.pairs)
    left_out = (
        f"{len(first)} of {every}: beside the best median, and the next one down"
        if len(first) < every
        else ""
    )
    note = "; ".join(filter(None, (left_out, said_once)))
    made = [Lines("Pair by pair", first, note=note, marked=True)] if first else []
    if others:
        made.append(Lines("Other ratios", others, note="first ÷ second, with the 95 % interval", marked=True))
    about = coverage(part)
    return [*made, about] if about is not None else made


def asked_figures(part: PartView) -> tuple[str, ...]:
    """The figures that its pairs are about before anything else: each load asks for one."""
    compared = {pair.figure for pair in part.pairs}
    asked = dict.fromkeys(cell.asked_figure for cell in part.cells)
    return tuple(figure for figure in asked if figure in compared) or (HEADLINE,)


def coverage(part: PartView) -> Lines | None:
    """What the intervals of a part cover and what they do not; nothing without an interval."""
    if all(pair.low is None for pair in part.pairs):
        return None
    said = [covered_levels(part)]
    if part.shared:
        what = "workloads and loads" if part.part.share_process == "workloads" else "loads"
        said.append(
            f"The {what} of a server shared processes: one that came out slow is slow under all of them, so "
            f"the ratios under different {what} are not independent of each other."
        )
    said += [one.sentence for one in part.positions]
    if part.levels is not None:
        said.append(levels.words(part.levels))
    if part.aa_on_record is not None:
        said.append(aa.record_words(part.aa_on_record))
    return Lines("What the intervals cover", tuple(said))


def aa_blocks(part: PartView) -> list[Block]:
    """A server against itself: the table, and how often it was called different."""
    said = (
        aa.words(part.aa)
        if part.aa is not None
        else ["No rate: too few trials count for one experiment under two names."]
    )
    return [*results(part), Lines("The same server under two names", tuple(said), marked=True)]


def gate_blocks(part: PartView) -> list[Block]:
    """A candidate against its base: the figures' changes, the table, what the intervals cover."""
    if part.gate is None:
        return results(part)
    told = gate.blocks(part.gate, part.aa_on_record)
    return [*told, *results(part), Lines("What the intervals cover", (covered_levels(part),))]


def covered_levels(part: PartView) -> str:
    """Of which levels (requests, windows, processes, boots, builds) the trials are a sample."""
    owned = [trial.record.evidence.server.owned for trial in part.trials]
    if owned and all(owned):
        return (
            "Fresh processes of one build of each server, on one boot of this host. Another build or "
            "another boot is not in them."
        )
    return (
        "Windows of servers that were already running: one process each, on one boot of this host. "
        "Another start, build or boot is not in them."
    )


def in_words(pairs: Sequence[PairView]) -> tuple[tuple[str, ...], str]:
    """The sentence of each pair; and what the intervals of all rest on, where that is the same: else each
    sentence says it.
    """
    bases = {pair.basis for pair in pairs if pair.basis}
    made = []
    for pair in pairs:
        own = f" ({pair.basis})" if pair.basis and len(bases) > 1 else ""
        made.append(f"{at_place(pair, pair.sentence)}{own}")
    return tuple(made), f"intervals: {bases.pop()}" if len(bases) == 1 else ""


def at_place(pair: PairView, said: str) -> str:
    """With the workload and load of the pair, where a part has several."""
    return f"{pair.where}: {said}" if pair.where else said


def ratio_line(pair: PairView) -> str:
    """One figure of a pair: ratio, interval, what follows."""
    numbers, word = ratio(pair.ratio), "no interval"
    if pair.low is not None and pair.high is not None:
        numbers += f" [{ratio(pair.low)}, {ratio(pair.high)}]"
        word = CLAIM_WORDS[pair.claim]
    return at_place(pair, f"{label_of(pair.figure)}, {pair.a} ÷ {pair.b}: {numbers} {word}")


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One published figure beside ours, per server, each also relative to the servers' mean."""

    figure: str
    published: tuple[float | None, ...]
    measured: tuple[float | None, ...]

    @property
    def label(self) -> str:
        """As the table calls it."""
        return label_of(self.figure)

    @property
    def published_shape(self) -> tuple[float | None, ...]:
        """Published values ÷ their mean."""
        return _shape(self.published, self.measured)

    @property
    def measured_shape(self) -> tuple[float | None, ...]:
        """Measured values ÷ their mean (over the servers that have both)."""
        return _shape(self.measured, self.published)


def _shape(values: Sequence[float | None], others: Sequence[float | None]) -> tuple[float | None, ...]:
    """Each value ÷ the mean over the servers that have both; nothing when fewer than two have."""
    both = [v for v, o in zip(values, others, strict=True) if v is not None and o is not None]
    mean = sum(both) / len(both) if len(both) > 1 else 0.0
    return tuple(v / mean if v is not None and mean else None for v in values)


def published_figures(cells: Sequence[CellView]) -> dict[str, tuple[str, dict[str, float]]]:
    """Each figure that others published of these cells, all of it from the first source that has it: the
    label of that source, where there are several, and its values by the id of the cell.
    """
    sources: dict[str, dict[str, dict[str, float]]] = {}
    for cell in cells:
        for one in cell.cell.published:
            for figure, value in one.figures.items():
                sources.setdefault(figure, {}).setdefault(one.label, {})[cell.cell.id] = value
    found = {}
    for figure, of in sources.items():
        label, values = next(iter(of.items()))
        found[figure] = (label if len(of) > 1 else "", values)
    return found


def history(part: PartView) -> tuple[HistoryRow, ...]:
    """Published figures in the order of the table, for the servers of this part."""
    cells = cells_by_server(part)
    printed = published_figures(cells)
    known = [f for _, _, figures in LAYOUT for f in figures]
    order = [f for f in known if f in printed] + [f for f in printed if f not in known]
    ours = [[spread_of(cell, figure) for cell in cells] for figure in order]
    return tuple(
        HistoryRow(
            figure,
            tuple(printed[figure][1].get(cell.cell.id) for cell in cells),
            tuple(None if found is None else found.median for found in measured),
        )
        for figure, measured in zip(order, ours, strict=True)
    )


def sources(part: PartView) -> tuple[str, ...]:
    """Where the published figures come from, and what is to be kept in mind, each once."""
    found = (one for cell in part.cells for one in cell.cell.published)
    return tuple(dict.fromkeys(f"{one.source}: {one.note}" if one.note else one.source for one in found))


def history_table(part: PartView) -> Table | None:
    """Published and measured, each with its share of the servers' mean."""
    rows = []
    for row in history(part):
        for name, values, shape in (
            ("published", row.published, row.published_shape),
            ("measured", row.measured, row.measured_shape),
        ):
            cells = tuple(
                TableCell(rounded(row.figure, value), "" if of_mean is None else f"{ratio(of_mean)}×")
                for value, of_mean in zip(values, shape, strict=True)
            )
            rows.append(Row(f"{row.label}, {name}", cells, measured=name == "measured"))
    if not rows:
        return None
    columns = tuple(Column(server.address) for server in part.servers)
    return Table(
        columns,
        (Section(tuple(rows)),),
        title="Published, as history",
        note="; ".join((*sources(part), "in brackets the share of the servers' mean")),
    )
