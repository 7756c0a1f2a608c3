"""The answer of a result: what is shown, a row per server, the largest uncertainty and what to do about it.
What terminal, page and JSON put first. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prony.compare.claim import Claim
from prony.compare.sentence import OBSTACLES, percent_up, remedy
from prony.judge.estimate import Uncertainty
from prony.judge.finding import Bias
from prony.report import aa
from prony.report.blocks import Column, Row, Section, Table, TableCell
from prony.report.cell_view import HEADLINE, BudgetLine, CellView, Condition
from prony.report.comparison import at_place, best, lower_is_better
from prony.report.intervals import over_trials
from prony.report.labels import label_of, named
from prony.report.result import PairView, PartView, ResultView
from prony.report.scaling import capacity_words, law_words
from prony.report.uncertain import bends, figure_good_to, good_to
from prony.report.wording import counted
from prony.report.words import join

MOST_SENTENCES = 4
MOST_ROWS = 12
"""Cells of which each has a row; of more the details have the table."""
MOST_CONDITIONS = 3
BESIDE = ("p99_ms", "server_cpu_us_per_request")
"""The figures that stand beside the one that is asked for."""
SURE = 0.005
"""An uncertainty below this is not worth a line of its own."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A cell's figure for a drawing."""

    label: str
    server: str
    value: float
    off: Uncertainty
    budget: tuple[BudgetLine, ...]
    """What may bend it, the largest first."""


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """What a part comes to."""

    title: str
    figure: str
    """What it is about."""
    sentences: tuple[str, ...]
    rows: Table | None
    """A row per server, best first; None where a part has too many cells, or no figure."""
    bars: tuple[Bar, ...]
    largest: str
    """The largest line of the budget, and what to do about it; empty where nothing matters."""
    failure: str
    """Why there is no figure; empty where there is."""
    shows: bool
    """Whether any pair is decided."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a result comes to."""

    parts: tuple[AnswerPart, ...]
    conforming: str
    """How many trials conform."""
    provided: tuple[Condition, ...]
    """What all of it rests on."""

    @property
    def sentence(self) -> str:
        """The first sentence: of a part in which something is shown, where there is one."""
        telling_first = sorted(self.parts, key=lambda part: not part.shows)
        said = (text for part in telling_first for text in (*part.sentences, part.failure) if text)
        return next(said, self.conforming)


def answer(view: ResultView) -> Answer:
    """The whole answer."""
    parts = tuple(_part(part, several=len(view.parts) > 1) for part in view.parts)
    return Answer(parts, conforming(view), _provided(view))


def conforming(view: ResultView) -> str:
    """How many trials conform, and how many were planned where not all ended."""
    trials = [trial for trial in view.trials if trial.record.kind == "trial"]
    good = sum(trial.conforms for trial in trials)
    if not trials:
        return "nothing was measured"
    if len(trials) == 1:
        return "the trial conforms" if good else "the trial does not conform"
    ended = "" if len(trials) >= view.planned else f" of {view.planned} planned"
    return f"{good} of {counted(len(trials), 'trial')}{ended} conform"


def provided(found: Answer) -> tuple[str, ...]:
    """What all of it rests on, in one line; nothing where it rests on nothing."""
    if not found.provided:
        return ()
    texts = [one.text for one in found.provided]
    more = len(texts) - MOST_CONDITIONS
    return (
        f"Provided that {'; '.join(texts[:MOST_CONDITIONS])}" + (f"; and {more} more" if more > 0 else ""),
    )


def quick_words(view: ResultView) -> str:
    """What a quick run rests on."""
    trials = max((len(cell.trials) for cell in view.cells), default=0)
    return f"{counted(trials, 'trial')} each"


def _provided(view: ResultView) -> tuple[Condition, ...]:
    found = {one.text: one for cell in view.cells for one in cell.provided}
    return tuple(found.values())


def _part(part: PartView, *, several: bool) -> AnswerPart:
    figure = part.asked_figure
    cells = [cell for cell in _ordered(part, figure) if cell.asked_figure == figure]
    drawn = cells if len(cells) <= (3 if several else MOST_ROWS) else []
    return AnswerPart(
        title=part.part.title,
        figure=figure,
        sentences=() if part.failure else sentences(part, 2 if several else MOST_SENTENCES),
        rows=rows(part, drawn, figure),
        bars=tuple(bar for cell in cells if (bar := _bar(cell, figure)) is not None),
        largest=_largest(cells, figure),
        failure=part.failure or _failure(part),
        shows=any(pair.claim is not Claim.OPEN for pair in part.pairs),
    )


def _ordered(part: PartView, figure: str) -> list[CellView]:
    """Cells with a figure, best first where servers are compared; the others after them."""
    spreads = {id(cell): cell.figure(figure) for cell in part.cells}
    known = [cell for cell in part.cells if spreads[id(cell)] is not None]
    if part.layout == "comparison":
        down = lower_is_better(figure)

        def median(cell: CellView) -> float:
            found = spreads[id(cell)]
            return 0.0 if found is None else found.median

        known.sort(key=median, reverse=not down)
    return [*known, *(cell for cell in part.cells if spreads[id(cell)] is None)]


# -- sentences


def sentences(part: PartView, most: int = MOST_SENTENCES) -> tuple[str, ...]:
    """What holds of a part, the first thing first."""
    if part.gate is not None:
        return (part.gate.sentence,)
    if part.search is not None:
        return (capacity_words(part.search),)
    if part.aa is not None:
        return tuple(aa.words(part.aa)[:2])
    if not part.trials:
        return (_not_run(part),)
    if part.part.shape == "sweep":
        said = [text for server, law in part.laws.items() for text in law_words(law)[:1]]
        return tuple(said[:most])
    if any(not finding.conforms for finding in part.findings):
        first = next(finding for finding in part.findings if not finding.conforms)
        return (f"The servers are not compared: {first.reason}",)
    if part.layout == "comparison" and len(part.servers) > 2 and part.pairs:
        return tuple(ranked(part)[:most])
    found = telling(part)
    if part.layout == "comparison":
        asked = part.asked_figure
        found += [pair for pair in part.pairs if pair.figure == "p99_ms" != asked and pair.differs]
    return tuple(_later_once(found[:most])) or single(part)


def _later_once(said: Sequence[PairView | str]) -> list[str]:
    """Sentences that are read together: what comes later is said of the first pair that has it."""
    pairs = (one for one in said if not isinstance(one, str))
    first = next((pair for pair in pairs if pair.sentence != pair.window_sentence), None)
    return [
        one if isinstance(one, str) else at_place(one, one.sentence if one is first else one.window_sentence)
        for one in said
    ]


def _not_run(part: PartView) -> str:
    """The first reason, without what stands in its brackets; the details have all of it."""
    return f"Not run: {part.skipped[0].why.partition(' (')[0]}" if part.skipped else "Not run"


def telling(part: PartView) -> list[PairView]:
    """The pairs that answer first, where servers are not ranked: what is shown before what is open."""
    figure = part.asked_figure
    main = [pair for pair in part.pairs if pair.figure == figure]
    return sorted(main, key=lambda pair: (CLAIMS.index(pair.claim), -(pair.at_least or 0.0)))


def ranked(part: PartView) -> list[str]:
    """Of a comparison of several servers: whom the best one is shown to differ from, the closest one first;
    who is not shown to differ from it; and the worst p99.
    """
    figure = part.asked_figure
    order = [cell.cell.server for cell in _ordered(part, figure) if cell.counting]
    if not order:
        return []
    best_one = order[0]
    beside = {_other(pair, best_one): pair for pair in part.pairs if _among(pair, figure, best_one)}
    near = [server for server in order[1:] if server in beside and not beside[server].differs]
    far = [server for server in order[1:] if server in beside and beside[server].differs]
    said: list[PairView | str] = [beside[server] for server in far[: 1 if near else 2]]
    if len(near) == 1:
        said.append(beside[near[0]])
    elif near:
        said.append(_not_told(best_one, lower_is_better(figure), [beside[server] for server in near]))
    tails = [pair for pair in part.pairs if pair.figure == "p99_ms" != figure and pair.differs]
    worst = max(tails, key=lambda pair: pair.at_least or 0.0, default=None)
    return _later_once(said if worst is None else [*said, worst])


def _among(pair: PairView, figure: str, server: str) -> bool:
    return pair.figure == figure and server in (pair.a, pair.b)


def _other(pair: PairView, server: str) -> str:
    return pair.b if pair.a == server else pair.a


def _not_told(best_one: str, lower: bool, near: Sequence[PairView]) -> str:
    """Several servers that are not shown to differ from the one with the best median."""
    close = [_other(p, best_one) for p in near if p.claim is Claim.EQUIVALENT]
    undecided = [p for p in near if p.claim is Claim.OPEN]
    said = [f"{best_one} has the {'lowest' if lower else 'highest'} median"]
    if close:
        within = max(p.within or 0.0 for p in near if p.claim is Claim.EQUIVALENT)
        said.append(
            f"{join(close)} {'is' if len(close) == 1 else 'are'} equivalent within {percent_up(within)}"
        )
    if undecided:
        soonest = min(
            (p.settles for p in undecided if p.settles is not None and p.settles.seconds is not None),
            key=lambda one: one.seconds or 0.0,
            default=None,
        )
        names = join([_other(p, best_one) for p in undecided])
        how = "" if soonest is None else f"; for one of them {remedy(soonest)}"
        said.append(f"open against {names}{how}")
    return "; ".join(said)


CLAIMS = tuple(Claim)


def single(part: PartView) -> tuple[str, ...]:
    """A sentence per cell of a part without pairs, as far as there are few."""
    if len(part.cells) > 1:
        return _extremes(part)
    return tuple(said for cell in part.cells if (said := _of_cell(cell)))


def _of_cell(cell: CellView) -> str:
    figure = cell.asked_figure
    found, off = cell.figure(figure), cell.uncertainty(figure)
    if found is None:
        return ""
    unit, of = ("requests/s", "") if figure == HEADLINE else ("ms", f"{label_of(figure)} ")

    def written(value: float) -> str:
        return f"{over_trials(figure, found, value)} {unit}"

    value = written(found.median)
    if off is not None:
        value = figure_good_to(found.median, *off.worst, written, ", good to ")
    bound = f"; bound by {cell.bound_by}" if cell.bound_by not in ("", "unknown") else ""
    return f"{of}{value}{bound}"


def _extremes(part: PartView) -> tuple[str, ...]:
    """Of one server under several loads, where it answers most and least."""
    figure = part.asked_figure
    found = [(spread, cell) for cell in part.cells if (spread := cell.figure(figure)) is not None]
    if len(found) < 2:
        return tuple(said for _, cell in found if (said := _of_cell(cell)))
    found.sort(key=lambda one: one[0].median)
    least, most = (
        f"{cell.label}: {over_trials(figure, spread, spread.median)}"
        for spread, cell in (found[0], found[-1])
    )
    return (f"Of {len(found)} cells {label_of(figure)} is highest in {most}, and lowest in {least}",)


# -- rows


def rows(part: PartView, cells: Sequence[CellView], figure: str) -> Table | None:
    """A row per cell: the figure, how far it may be off, what stands beside it."""
    if not any(cell.counting for cell in cells):
        return None
    beside = [name for name in BESIDE if name != figure and any(c.figure(name) is not None for c in cells)]
    winner = best(part, figure) if part.layout == "comparison" else None
    made = []
    for cell in cells:
        found, off = cell.figure(figure), cell.uncertainty(figure)
        if found is None:
            why = next(iter(cell.why_not), "not measured")
            made.append(
                Row(
                    cell.label,
                    (TableCell("no figure"), TableCell(why), *(TableCell("–") for _ in beside)),
                    server=cell.cell.server,
                )
            )
            continue
        made.append(
            Row(
                cell.label,
                (
                    TableCell(over_trials(figure, found, found.median), best=cell.cell.server == winner),
                    TableCell("" if off is None else good_to(*off.worst)),
                    *(_median(cell, name) for name in beside),
                ),
                server=cell.cell.server,
            )
        )
    head = (
        Column(named(figure)),
        Column("good to", number=False),
        *(Column(named(name), rank=at + 1) for at, name in enumerate(beside)),
    )
    return Table(head, (Section(tuple(made)),), caption="Figures")


def _median(cell: CellView, name: str) -> TableCell:
    found = cell.figure(name)
    return TableCell("–" if found is None else over_trials(name, found, found.median))


def _bar(cell: CellView, figure: str) -> Bar | None:
    found, off = cell.figure(figure), cell.uncertainty(figure)
    if found is None or off is None:
        return None
    return Bar(cell.label, cell.cell.server, found.median, off, cell.budget(figure))


# -- what stands against it


def _largest(cells: Sequence[CellView], figure: str) -> str:
    """What may move a figure most, chance or a line of a budget, and what to do."""
    said: list[tuple[float, str]] = []
    for cell in cells:
        whose = f"{cell.label}, " if len(cells) > 1 else ""
        for line in cell.budget(figure)[:1]:
            what = OBSTACLES.get(line.source, line.source)
            advice = f"; {line.advice}" if line.advice else ""
            said.append((line.bias.size, f"{whose}{what}, {bends(line.low, line.high)}{advice}"))
        off = cell.uncertainty(figure)
        if off is not None and off.low is not None and off.high is not None:
            by_chance = Bias(low=off.low, high=off.high)
            remedy = "more trials" if len(cell.counting) > 1 else "a longer window"
            said.append((by_chance.size, f"{whose}chance, {bends(off.low, off.high)}; {remedy}"))
    size, text = max(said, default=(0.0, ""))
    return "" if size < SURE else f"Largest uncertainty: {text}"


def _failure(part: PartView) -> str:
    """Why a part has no figure at all."""
    if part.counting or not part.trials:
        return ""
    why: Iterable[str] = dict.fromkeys(trial.why_not for trial in part.trials if trial.why_not)
    return f"No figure: {'; '.join(list(why)[:2])}"
