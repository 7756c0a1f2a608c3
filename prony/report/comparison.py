"""A comparison and its tables, and a server against itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from prony.analysis import compared_figure, sample
from prony.compare.claim import Claim
from prony.compare.false_differences import false_differences
from prony.compare.sentence import floor, percent_up, remedy
from prony.judge.figures import published_mark
from prony.judge.finding import Kind
from prony.report import aa
from prony.report.blocks import Block, Chapter, Column, Lines, Row, Section, Table, TableCell, words
from prony.report.cell_view import HEADLINE, CellView, TrialView
from prony.report.history import history_table
from prony.report.intervals import between, failed_lines, heading, over_trials
from prony.report.labels import (
    LAYOUT,
    OFFERED,
    SERVICE_TIMES,
    label_of,
    unit_of,
)
from prony.report.pairs import (
    across_trials,
    drawn_pairs,
    levels_of,
    lower_is_better,
    pair_lines,
    pairs_of,
    positions_of,
    with_plateau,
)
from prony.report.result import PairView, PartView
from prony.report.shape import MOST_SENTENCES, Shape, left_out, of_cells, steps_chapter
from prony.report.trial_tables import group_lines, step_blocks
from prony.report.wording import bends, good_to, join_few, within

CLAIMS = tuple(Claim)
TAIL = "p99_ms"
ONLY_WHEN_OPEN = frozenset(OFFERED)
ONLY_WHEN_NOT_ZERO = frozenset({"blocked", "due_unsent", "failed_share"})
FEWEST_CONNECTIONS_PER_REQUEST = 0.001
"""With fewer all connections are kept alive, and the figure says nothing."""
EVIDENCE_FIGURES = ("users_simulated", "think_actual_share", "server_cpu_share", "client_cpu_share")


class Compared(Shape):
    """Cells of several servers, each question (workload and load) answered pair by pair."""

    def analysed(self, part: PartView) -> PartView:
        part = replace(part, cells=tuple(map(with_plateau, part.cells)))
        part = replace(part, findings=across_trials(part))
        if any(not finding.conforms for finding in part.findings):
            return part
        return replace(
            part,
            pairs=tuple(pairs_of(part)),
            positions=tuple(positions_of(part)),
            levels=levels_of(part.cells) if part.part.shape == "comparison" and part.cells else None,
        )

    def measured(self, part: PartView, most: int) -> tuple[str, ...]:
        differ = next((finding for finding in part.findings if not finding.conforms), None)
        if differ is not None:
            return (f"The servers are not compared: {differ.reason}",)
        return self.answers(part, most)

    def answers(self, part: PartView, most: int) -> tuple[str, ...]:
        return tuple(_later_once(decided_first(part)[:most])) or of_cells(part)


class Comparison(Compared):
    """Servers, each under a single load."""

    lists_failures = True
    charts = ("bounds",)

    def ranking(self, part: PartView) -> list[CellView]:
        return best_first(part)

    def winner(self, part: PartView, figure: str) -> str | None:
        return best(part, figure)

    def answers(self, part: PartView, most: int) -> tuple[str, ...]:
        if len(part.servers) > 2 and part.pairs and part.part.comparisons is None:
            return tuple(ranked(part)[:most])
        tails = [p for p in part.pairs if p.figure == TAIL != part.headline_figure and p.differs]
        return tuple(_later_once([*decided_first(part), *tails][:most])) or of_cells(part)

    def blocks(self, part: PartView) -> list[Block]:
        lines = history_table(part)
        return [
            *results(part),
            *pair_lines(part, drawn_pairs(part)),
            *([lines] if lines is not None else []),
            *steps(part),
        ]

    def chapters(self, part: PartView) -> list[Chapter | str]:
        lead = (
            "Median over trials (each a fresh server process), and its interval or range. Bold: "
            "shown to be better than every other server."
        )
        return [
            Chapter("results", "Results", (*results(part), *left_out(part)), lead),
            steps_chapter(steps(part)),
            *("ratios", "latency", "throughput", "start-up", "cpu", "sockets", "history"),
        ]


class SameServer(Shape):
    """A server against itself: how often it is called different."""

    lists_failures = True

    def analysed(self, part: PartView) -> PartView:
        design = part.part.aa
        if design is None or not part.cells:
            return part
        cell = part.cells[0]
        figure = compared_figure(cell.cell.trial.load)
        samples = [sample(t.record, t.judgement, t.figures, figure) for t in cell.trials]
        many = {"each": design.each, "experiments": design.experiments, "seed": part.seed}
        return replace(part, aa=false_differences(samples, figure, **many, band=part.part.band))

    def sentences(self, part: PartView, most: int = MOST_SENTENCES) -> tuple[str, ...]:
        return tuple(aa.words(part.aa)[:2]) if part.aa is not None else super().sentences(part, most)

    def blocks(self, part: PartView) -> list[Block]:
        return [*results(part), self._rate(part)]

    def chapters(self, part: PartView) -> list[Chapter | str]:
        lead = "Median over trials (each a fresh server process), smallest and largest below."
        rate = self._rate(part)
        return [
            Chapter("results", "Results", tuple(results(part)), lead),
            Chapter("aa", rate.title, (rate,)),
        ]

    def _rate(self, part: PartView) -> Lines:
        few = ["No rate: too few trials count for an A/A experiment."]
        sentences = few if part.aa is None else aa.words(part.aa)
        return Lines("The same server under two names", tuple(sentences), marked=True)


# -- sentences


def best_first(part: PartView) -> list[CellView]:
    """Cells with a figure, best first; the others after them."""
    figure = part.headline_figure
    sign = 1 if lower_is_better(figure) else -1

    def place(cell: CellView) -> tuple[bool, float]:
        spread = cell.figure(figure)
        return spread is None, 0.0 if spread is None else sign * spread.median

    return sorted(part.cells, key=place)


def decided_first(part: PartView) -> list[PairView]:
    """The pairs that answer first, where servers are not ranked: what is shown before what is open."""
    main = [pair for pair in part.pairs if pair.figure == part.headline_figure]
    return sorted(main, key=lambda pair: (CLAIMS.index(pair.claim), -(pair.at_least or 0.0)))


def _later_once(sentences: Sequence[PairView | str]) -> list[str]:
    """Sentences of these pairs; residual drift only with the first pair that has it."""
    pairs = (sentence for sentence in sentences if not isinstance(sentence, str))
    first = next((pair for pair in pairs if pair.sentence != pair.window_sentence), None)

    def text(pair: PairView) -> str:
        return within(pair.where, pair.sentence if pair is first else pair.window_sentence)

    return [sentence if isinstance(sentence, str) else text(sentence) for sentence in sentences]


def ranked(part: PartView) -> list[str]:
    """Servers the best differs from, closest first; those still open; and the worst p99."""
    order = [cell.cell.server for cell in best_first(part) if cell.counting]
    if not order:
        return []
    figure = part.headline_figure
    far, near = _pairs_with(part, figure, *order)
    sentences: list[PairView | str] = [*far[: 1 if near else 2]]
    if len(near) == 1:
        sentences.append(near[0])
    elif near:
        highest = "lowest" if lower_is_better(figure) else "highest"
        sentences.append(_with_open(f"{order[0]} has the {highest} median", order[0], near))
    return _later_once([*sentences, *worst_tail(part)])


def _pairs_with(part: PartView, figure: str, a: str, *others: str) -> tuple[list[PairView], list[PairView]]:
    """Its pairs with the others, in their order: those that are shown to differ, and the rest."""
    with_it = [pair for pair in part.pairs if pair.figure == figure and a in (pair.a, pair.b)]
    by_other = {_other(pair, a): pair for pair in with_it}
    pairs = [by_other[server] for server in others if server in by_other]
    return [pair for pair in pairs if pair.differs], [pair for pair in pairs if not pair.differs]


def worst_tail(part: PartView) -> list[str]:
    """The server with the worst p99, by how much at least, and those it is open against."""
    known = {c.cell.server: f for c in part.cells if (f := c.figure(TAIL)) is not None}
    if part.headline_figure == TAIL or len(known) < 2:
        return []
    slowest, *others = sorted(known, key=lambda server: -known[server].median)
    far, near = _pairs_with(part, TAIL, slowest, *others)
    value = over_trials(TAIL, known[slowest], known[slowest].median)
    which = f"p99 is {'worst' if len(far) == len(others) else 'highest'} at {slowest}, {value} ms"
    if far:
        least = min(far, key=lambda pair: pair.at_least or 1.0)
        scope = "at worst" if least.claim is Claim.SHOWN else "for this window"
        which += f", at least {floor(least.at_least or 1.0)} {_other(least, slowest)}'s {scope}"
    return [_with_open(which, slowest, [replace(pair, settles=None) for pair in near])]


def _other(pair: PairView, server: str) -> str:
    return pair.b if pair.a == server else pair.a


def _with_open(first: str, server: str, near: Sequence[PairView]) -> str:
    """`first`, and of which others it is not shown."""
    close = [_other(p, server) for p in near if p.claim is Claim.EQUIVALENT]
    undecided = [p for p in near if p.claim is Claim.OPEN]
    clauses = [first]
    if close:
        within = max(p.within or 0.0 for p in near if p.claim is Claim.EQUIVALENT)
        clauses.append(
            f"{join_few(close)} {'is' if len(close) == 1 else 'are'} equivalent within {percent_up(within)}"
        )
    if undecided:
        soonest = min(
            (p.settles for p in undecided if p.settles is not None and p.settles.seconds is not None),
            key=lambda pair: pair.seconds or 0.0,
            default=None,
        )
        names = join_few([_other(p, server) for p in undecided])
        how = "" if soonest is None else f"; for the nearest pair {remedy(soonest)}"
        clauses.append(f"open against {names}{how}")
    return "; ".join(clauses)


# -- tables


def results(part: PartView) -> list[Block]:
    groups = next((group_lines(trial.record.evidence) for trial in part.trials), [])
    made: list[Block] = [Lines("Groups of users", tuple(groups))] if groups else []
    return [*made, figures_table(part), *failed_lines(part.cells)]


def steps(part: PartView) -> list[Block]:
    """The steps of each server, where the workload has several."""
    return [block for cell in part.cells for block in step_blocks(cell.trials, cell.label)]


def best(part: PartView, figure: str) -> str | None:
    """The server shown to be better than every other in this figure; else None."""
    addresses = [server.address for server in part.servers]
    for server in addresses if len(addresses) > 1 else ():
        won = [pair for pair in part.pairs if pair.figure == figure and pair.better == server]
        if {server, *(_other(pair, server) for pair in won)} >= set(addresses):
            return server
    return None


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
    bound, conforming = closing_rows(part.cells)
    rows = (bound, *shares, *_budget_rows(part), *_drift_row(part), conforming)
    columns = tuple(Column(server.address) for server in part.servers)
    shown = heading(cell.figure(HEADLINE) for cell in part.cells)
    return Table(columns, (*sections, Section(rows, "Evidence")), heading=shown, caption="Results")


def closing_rows(cells: Sequence[CellView]) -> tuple[Row, Row]:
    bound = words(*(cell.bound_by or "no figure" for cell in cells))
    return Row("bound by", bound), Row("trials that conform", tuple(map(conforming_cell, cells)))


def says_something(part: PartView, figure: str) -> bool:
    """Whether a figure is informative in this part."""
    values = [spread.median for cell in part.cells if (spread := cell.figure(figure)) is not None]
    if not values or (figure in ONLY_WHEN_OPEN and not part.is_open):
        return False
    if figure in ONLY_WHEN_NOT_ZERO and not any(values):
        return False
    if figure in SERVICE_TIMES:
        own = figure.removeprefix("service_time_")
        return any(t.figure(figure) != t.figure(own) for cell in part.cells for t in cell.counting)
    return figure != "connections_per_request" or max(values) > FEWEST_CONNECTIONS_PER_REQUEST


def _row(part: PartView, figure: str) -> Row | None:
    return (
        figure_row(part, figure, label_of(figure), unit_of(figure)) if says_something(part, figure) else None
    )


def figure_row(part: PartView, figure: str, name: str, unit: str = "") -> Row:
    """A figure of every server, the best marked."""
    winner = best(part, figure)
    made = (figure_cell(figure, cell, best=cell.cell.server == winner) for cell in part.cells)
    return Row(name, tuple(made), unit)


def figure_cell(figure: str, of: CellView, *, best: bool = False) -> TableCell:
    """Median and range, or why there is none."""
    spread, many = of.figure(figure), len(of.counting)
    if spread is None:
        return TableCell("–" if many or not of.trials else "no figure")
    missing = f", in {spread.n} of {many}" if spread.n < many else ""
    ends = between(figure, spread) or ("one trial" if of.cell.trials > 1 else "")
    return TableCell(over_trials(figure, spread, spread.median), ends + missing, best)


def _drift_row(part: PartView) -> list[Row]:
    plateaus = [cell.plateau for cell in part.cells]
    horizon_s = next((plateau.horizon_s for plateau in plateaus if plateau is not None), None)
    if horizon_s is None:
        return []
    made = words(*("–" if plateau is None else good_to(plateau.low, plateau.high) for plateau in plateaus))
    return [Row(f"residual drift within {horizon_s:g} s", made)]


def _budget_rows(part: PartView) -> list[Row]:
    figure = part.headline_figure
    budgets = [{line.name: line for line in cell.budget(figure)} for cell in part.cells]
    names = dict.fromkeys(name for budget in budgets for name, line in budget.items() if line.bias.counts)
    return [
        Row(
            f"{name}, {label_of(figure)}",
            words(*(bends(b[name].low, b[name].high) if name in b else "–" for b in budgets)),
        )
        for name in names
    ]


def conforming_cell(cell: CellView, *more: str) -> TableCell:
    """How many trials conform, what more is to be known of them, and how many were repeated."""
    notes = [*more, *([f"{len(cell.superseded)} repeated"] if cell.superseded else [])]
    every = len(cell.counting) == len(cell.trials)
    kind = Kind.NOT_CONFORMING if not cell.counting else Kind.FINE if every else Kind.BUDGET
    return TableCell(f"{len(cell.counting)} of {len(cell.trials)}", ", ".join(notes), kind=kind)
