"""The answer of a result, which terminal, page and JSON put first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC

from prony.compare.claim import Claim
from prony.judge import setup
from prony.judge.estimate import Uncertainty
from prony.judge.finding import Bias
from prony.report.blocks import Column, Row, Section, Table, TableCell, words
from prony.report.cell_view import BudgetLine, CellView, Condition
from prony.report.intervals import over_trials
from prony.report.labels import named
from prony.report.result import PartView, ResultView
from prony.report.shape import MOST_SENTENCES
from prony.report.shapes import shape_of
from prony.report.wording import bends, counted, good_to

MOST_ROWS = 12
"""Cells of which each has a row; of more the details have the table."""
MOST_CONDITIONS = 3
FURTHER = ("p99_ms", "server_cpu_us_per_request")
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
    """The answer of a part."""

    title: str
    figure: str
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
    """The answer of a result."""

    parts: tuple[AnswerPart, ...]
    conforming: str
    provided: tuple[Condition, ...]

    @property
    def sentence(self) -> str:
        """The first sentence; parts with a shown difference come first."""
        decided_first = sorted(self.parts, key=lambda part: not part.shows)
        texts = (text for part in decided_first for text in (*part.sentences, part.failure) if text)
        return next(texts, self.conforming)


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
    if max(len(trials), view.planned) == 1:
        return "the trial conforms" if good else "the trial does not conform"
    ended = "" if len(trials) >= view.planned else f" of {view.planned} planned"
    cut_short = "interrupted: " if view.state == "interrupted" else ""
    return f"{cut_short}{good} of {counted(len(trials), 'trial')}{ended} conform"


def provided(answer: Answer) -> tuple[str, ...]:
    """Conditions of the whole answer, in a line; empty without any."""
    if not answer.provided:
        return ()
    texts = [condition.text for condition in answer.provided]
    more = len(texts) - MOST_CONDITIONS
    return (
        f"Provided that {'; '.join(texts[:MOST_CONDITIONS])}" + (f"; and {more} more" if more > 0 else ""),
    )


def quick_words(view: ResultView) -> str:
    """What a quick run rests on."""
    trials = max((len(cell.trials) for cell in view.cells), default=0)
    return f"{counted(trials, 'trial')} each"


def label_lines(view: ResultView) -> list[str]:
    """What people say of it, a line each: its tags, and every note with its time and author."""
    tags = [f"tags: {', '.join(view.tags)}"] if view.tags else []
    return tags + [
        f"note of {note.made.astimezone(UTC):%Y-%m-%d %H:%M} UTC by {note.by}: {note.text}"
        for note in view.notes
    ]


def _provided(view: ResultView) -> tuple[Condition, ...]:
    findings = (f for part in view.parts for f in part.findings if f.provided)
    setups = [f for f in findings if f.check == setup.CHECK]
    text = setup.condition(dict.fromkeys(code for f in setups for code in str(f.value).split(", ")))
    conditions = {text: Condition(setup.CHECK, setups[0].code, text)} if setups else {}
    conditions |= {c.text: c for cell in view.cells for c in cell.provided}
    return tuple(conditions.values())


def _part(part: PartView, *, several: bool) -> AnswerPart:
    shape = shape_of(part)
    ranked = shape.ranking(part)
    figures = [cell.headline_figure for cell in ranked]
    figure = part.headline_figure if part.headline_figure in figures or not figures else figures[0]
    cells = [cell for cell in ranked if cell.headline_figure == figure]
    drawn = cells if len(cells) <= (3 if several else MOST_ROWS) else []
    return AnswerPart(
        title=part.part.title,
        figure=figure,
        sentences=() if part.failure else shape.sentences(part, 2 if several else MOST_SENTENCES),
        rows=rows(part, drawn, figure),
        bars=tuple(bar for cell in cells if (bar := _bar(cell, figure)) is not None),
        largest=_largest(cells, figure),
        failure=part.failure or _failure(part),
        shows=any(pair.claim is not Claim.OPEN for pair in part.pairs),
    )


# -- rows


def rows(part: PartView, cells: Sequence[CellView], figure: str) -> Table | None:
    """A row per cell: the figure, its error bounds, further figures."""
    if not any(cell.counting for cell in cells):
        return None
    further = [name for name in FURTHER if name != figure and any(c.figure(name) is not None for c in cells)]
    winner = shape_of(part).winner(part, figure)
    made = []
    for cell in cells:
        spread, off = cell.figure(figure), cell.uncertainty(figure)
        if spread is None:
            shown = words("no figure", next(iter(cell.why_not), "not measured"), *("–" for _ in further))
        else:
            shown = (
                TableCell(over_trials(figure, spread, spread.median), best=cell.cell.server == winner),
                TableCell("" if off is None else good_to(*off.worst)),
                *(_median(cell, name) for name in further),
            )
        made.append(Row(cell.label, shown, server=cell.cell.server))
    head = (
        Column(named(figure)),
        Column("good to", number=False),
        *(Column(named(name), rank=at + 1) for at, name in enumerate(further)),
    )
    return Table(head, (Section(tuple(made)),), caption="Figures")


def _median(cell: CellView, name: str) -> TableCell:
    spread = cell.figure(name)
    return TableCell("–" if spread is None else over_trials(name, spread, spread.median))


def _bar(cell: CellView, figure: str) -> Bar | None:
    spread, off = cell.figure(figure), cell.uncertainty(figure)
    if spread is None or off is None:
        return None
    return Bar(cell.label, cell.cell.server, spread.median, off, cell.budget(figure))


# -- caveats


def _largest(cells: Sequence[CellView], figure: str) -> str:
    candidates: list[tuple[float, str]] = []
    for cell in cells:
        whose = f"{cell.label}, " if len(cells) > 1 else ""
        for line in cell.budget(figure)[:1]:
            advice = f"; {line.advice}" if line.advice else ""
            candidates.append((line.bias.size, f"{whose}{line.name}, {bends(line.low, line.high)}{advice}"))
        off = cell.uncertainty(figure)
        if off is not None and off.low is not None and off.high is not None:
            by_chance = Bias(low=off.low, high=off.high)
            remedy = "more trials" if len(cell.counting) > 1 else "a longer window"
            candidates.append((by_chance.size, f"{whose}chance, {bends(off.low, off.high)}; {remedy}"))
    size, text = max(candidates, default=(0.0, ""))
    return "" if size < SURE else f"Largest uncertainty: {text}"


def _failure(part: PartView) -> str:
    if part.counting or not part.trials:
        return ""
    why: Iterable[str] = dict.fromkeys(trial.why_not for trial in part.trials if trial.why_not)
    return f"No figure: {'; '.join(list(why)[:2])}"
