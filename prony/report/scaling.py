"""A sweep with its scaling law, and a search for capacity. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from prony.compare.capacity import End, outcome_of, search_of
from prony.compare.scaling import Estimate, Point, Scaling, scaling
from prony.judge.finding import Kind
from prony.plan.load import OpenLoad, SteadyWindow
from prony.plan.objective import objectives
from prony.plan.part import Search
from prony.report.blocks import (
    KIND_WORDS,
    Block,
    Chapter,
    Column,
    Lines,
    Row,
    Section,
    Table,
    TableCell,
    words,
)
from prony.report.cell_view import HEADLINE, CellView
from prony.report.comparison import figure_cell
from prony.report.labels import named, rounded
from prony.report.matrix import cell_trials
from prony.report.result import PartView, SearchView, Tried
from prony.report.shape import MOST_SENTENCES, Shape
from prony.report.wording import ABSENT, number, significant

NOTHING = 1e-9
"""A coefficient below this is printed as 0: no number of users would feel it."""
FIGURES = ("requests_per_s", "p50_ms", "p99_ms", "server_cpu_share")


class Sweep(Shape):
    """Several numbers of users: for each server the law in words, and a row per number of users."""

    picture = "law"
    answers_by_server = True

    def analysed(self, part: PartView) -> PartView:
        servers = (server.address for server in part.servers)
        return replace(part, laws={server: law(part.of(server)) for server in servers})

    def measured(self, part: PartView, most: int) -> tuple[str, ...]:
        return tuple(law_words(law)[0] for law in part.laws.values())[:most]

    def blocks(self, part: PartView) -> list[Block]:
        made: list[Block] = []
        for server in part.servers:
            law = part.laws.get(server.address)
            title = "Scaling" if len(part.servers) == 1 else f"Scaling, {server.address}"
            cells = sorted(part.of(server.address), key=lambda cell: cell.users or 0)
            made += [Lines(title, tuple(law_words(law)), marked=True), _points(cells, law)]
        return made

    def chapters(self, part: PartView) -> list[Chapter | str]:
        return [Chapter("results", "Scaling", tuple(self.everything(part))), "cpu"]


class Capacity(Shape):
    """A search for the highest rate that meets an objective: its result, and a row per trial."""

    picture = "capacity"

    def analysed(self, part: PartView) -> PartView:
        wanted = part.part.search
        return part if wanted is None else replace(part, search=search_view(wanted, part))

    def sentences(self, part: PartView, most: int = MOST_SENTENCES) -> tuple[str, ...]:
        if part.search is None:
            return super().sentences(part, most)
        words = capacity_words(part.search)
        return (f"{part.cells[0].cell.server}: {words[0].lower()}{words[1:]}",)

    def ranking(self, part: PartView) -> list[CellView]:
        """The highest rate that held."""
        held = None if part.search is None else part.search.result.held_per_s
        loads = ((cell, cell.cell.trial.load) for cell in part.cells)
        at_it = [cell for cell, load in loads if isinstance(load, OpenLoad) and load.rate_per_s == held]
        return at_it if held is not None else super().ranking(part)

    def blocks(self, part: PartView) -> list[Block]:
        search = part.search
        if search is None:
            return []
        wanted = " and ".join(str(objective) for objective in search.objectives)
        columns = (
            Column("achieved/s", rank=4),
            Column("p50, ms", rank=3),
            Column("p99, ms", rank=1),
            Column("of allowed", rank=2),
            Column("outcome", number=False),
            Column("trial", number=False),
        )
        rows = Section(tuple(map(_tried, search.tried)))
        return [
            Lines(f"Capacity with {wanted}", (capacity_words(search),), marked=True),
            Table(columns, (rows,), heading="offered/s", caption="Trials by offered rate"),
        ]

    def chapters(self, part: PartView) -> list[Chapter | str]:
        tables = tuple(block for block in self.everything(part) if isinstance(block, Table))
        return [Chapter("results", "Trials by offered rate", tables), "cpu"]


def _points(cells: Sequence[CellView], law: Scaling | None) -> Table:
    rows = tuple(
        Row(
            f"{cell.users or 0:,}",
            (
                *(figure_cell(figure, cell) for figure in FIGURES),
                TableCell(ABSENT if law is None else rounded("requests_per_s", law.per_s(cell.users or 0))),
                cell_trials(cell),
            ),
        )
        for cell in cells
    )
    columns = (
        *(Column(named(figure), rank=place + 1) for place, figure in enumerate(FIGURES)),
        Column("by the law", rank=len(FIGURES) + 1),
        Column("trials", number=False),
    )
    return Table(columns, (Section(rows),), heading="users", caption="Points")


def law(cells: Sequence[CellView]) -> Scaling | None:
    """The law fitted to a server's counting trials."""
    points = [
        Point(float(cell.users), rate, trial.record.process.id if trial.record.process is not None else "")
        for cell in cells
        for trial in cell.counting
        if cell.users is not None and (rate := trial.figure(HEADLINE)) is not None and rate > 0
    ]
    return scaling(points)


def law_words(law: Scaling | None) -> list[str]:
    if law is None:
        return [
            "No law is fitted: fewer than four numbers of users have a trial that counts. "
            "Measure more numbers, or fix what the findings name."
        ]
    spot = (
        f"No sweet spot up to {number(law.most_users)} users: throughput still rises; measure more users."
        if law.rising
        else f"Sweet spot: {_users(law.sweet_spot)} reach 95 % of the highest fitted throughput up to "
        f"{number(law.most_users)} users; more users only add latency."
    )
    sentences = [
        spot,
        f"Universal Scalability Law: 1 user {_interval(law.rate_1)} requests/s, contention α "
        f"{_interval(law.alpha)}, coherency β {_interval(law.beta)}; typical residual {law.miss * 100:.1f} "
        "%.",
        _peak_words(law),
    ]
    if law.poor:
        sentences.append(
            "Residuals above 10 %: something else bounds this server (a pool, a delay, the client). Read the "
            "table, not the coefficients."
        )
    if law.alpha.low is None:
        sentences.append("No intervals: fewer than five numbers of users.")
    return sentences


def _users(estimate: Estimate) -> str:
    low, high = estimate.low, estimate.high
    interval = "" if low is None or high is None else f" [{_whole(low)}, {_whole(high)}]"
    return f"{_whole(estimate.value)}{interval} users"


def _whole(value: float) -> str:
    return "∞" if math.isinf(value) else number(math.ceil(value - 1e-9))


def _interval(estimate: Estimate) -> str:
    def text(value: float) -> str:
        if abs(value) < NOTHING:
            return "0"
        return f"{value:.3g}" if abs(value) < 0.001 else significant(value, 3)

    if estimate.low is None or estimate.high is None:
        return text(estimate.value)
    return f"{text(estimate.value)} [{text(estimate.low)}, {text(estimate.high)}]"


def _peak_words(law: Scaling) -> str:
    if math.isinf(law.peak.value):
        return f"No peak: by this law throughput does not fall up to {number(law.most_users)} users."
    peak = f"Highest throughput at N* = {_users(law.peak)}"
    if law.peak_seen:
        return f"{peak}: more users cost throughput."
    return f"{peak}: beyond the {number(law.most_users)} that were measured, so an extrapolation."


def search_view(plan: Search, part: PartView) -> SearchView:
    """The search, replayed from its trials in the order in which they ran."""
    wanted = objectives(plan.objectives)
    cell_of = {trial.record.id: cell.cell for cell in part.cells for trial in cell.every}
    rated = [
        (trial, load.rate_per_s)
        for trial in part.trials
        if isinstance(load := cell_of[trial.record.id].trial.load, OpenLoad) and load.rate_per_s
    ]
    measured = part.cells[0].cell.trial.measured if part.cells else None
    window_s = measured.length_s if isinstance(measured, SteadyWindow) else 10.0
    search = search_of(plan, window_s, rated[0][1] if rated else None)
    tried = []
    for trial, rate in rated:
        outcome, share = outcome_of(trial.record, trial.judgement, trial.figures, wanted)
        search.tell(rate, outcome, share)
        tried.append(Tried(trial, rate, outcome, share))
    return SearchView(wanted, search.result, tuple(sorted(tried, key=lambda trial: trial.rate_per_s)))


def _tried(tried: Tried) -> Row:
    figures = tried.trial.figures if tried.trial.counts else {}
    measured = (significant(figures.get(name), 4) for name in (HEADLINE, "p50_ms", "p99_ms"))
    share = ABSENT if tried.pressure is None else f"{tried.pressure * 100:.0f} %"
    kind = Kind.FINE if tried.trial.conforms else Kind.NOT_CONFORMING
    cells = (*words(*measured, share, tried.outcome.value), TableCell(KIND_WORDS[kind], kind=kind))
    return Row(significant(tried.rate_per_s, 4), cells)


def capacity_words(search: SearchView) -> str:
    outcome = search.result
    held, failed, client, undecided = (
        None if rate is None else f"{significant(rate, 4)} requests/s"
        for rate in (outcome.held_per_s, outcome.failed_per_s, outcome.client_per_s, outcome.undecided_per_s)
    )
    trials = f"{outcome.trials} trials"
    if outcome.end is End.FOUND:
        return f"{held} held, {failed} did not ({trials})."
    if outcome.end is End.UNDECIDED:
        known = f"{held} held" if held is not None else "No rate held"
        return (
            f"{known}; at {undecided} the limit lies within the interval of the figure ({trials}): a longer "
            "--window decides more closely."
        )
    if outcome.end is End.CLIENT and held is not None:
        return f"At least {held}: this client could not offer {client} ({trials})."
    if outcome.end is End.CLIENT:
        return f"No answer: this client could not even offer {client} ({trials})."
    if outcome.end is End.NEVER:
        return f"Not even {failed} held, the search's lowest rate ({trials})."
    if outcome.end is End.HIGHEST:
        return f"At least {held}, the search's highest rate ({trials})."
    known = f"{held} held" if held is not None else "no rate held"
    known += f", {failed} did not" if failed is not None else ""
    known += f", {undecided} undecided" if undecided is not None else ""
    if not outcome.trials:
        return "The search ended before its first rate."
    if outcome.end is None:
        return f"{known[0].upper()}{known[1:]}; the search ended early ({trials})."
    if outcome.end is End.TRIALS:
        return f"The search ended after {trials}: {known}; allow more with --search-trials."
    return f"Trials at the same rate did not conform twice ({trials}): {known}; the checks say why."
