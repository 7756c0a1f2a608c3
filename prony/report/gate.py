"""A gate in words: is the candidate no worse than its base, figure by figure? Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from prony.analysis import changes_of, sample
from prony.compare.bias import Source
from prony.compare.noninferiority import FEWEST_EXPERIMENTS, Change, Changes, FigureChange
from prony.compare.sentence import OBSTACLES
from prony.compare.summary import CONFIDENCE
from prony.experiment.budget import own_s
from prony.judge.figures import FIGURE
from prony.judge.finding import Finding
from prony.numbers import percent
from prony.plan.part import GateTest
from prony.report import aa
from prony.report.blocks import Block, Chapter, Column, Lines, Row, Section, Table, TableCell
from prony.report.comparison import results
from prony.report.labels import label_of, unit_of
from prony.report.out import filled
from prony.report.pairs import across_trials, covered_levels, later_of, looks_of, with_plateau
from prony.report.result import GateView, PartView
from prony.report.shape import MOST_SENTENCES, Shape
from prony.report.wording import UNBOUNDED, bends, counted, duration, signed

MOST_DIGITS = 4
MORE_BLOCKS = 100
"""Larger numbers of blocks are not advised."""


class Gate(Shape):
    """A candidate against its base: the sentence, the figures' changes, the table."""

    lists_failures = True
    picture = "changes"

    def analysed(self, part: PartView) -> PartView:
        part = replace(part, cells=tuple(map(with_plateau, part.cells)))
        if part.part.gate is None:
            return part
        findings = across_trials(part)
        return replace(part, gate=_gate(part, part.part.gate, findings), findings=findings)

    def sentences(self, part: PartView, most: int = MOST_SENTENCES) -> tuple[str, ...]:
        return (part.gate.sentence,) if part.gate is not None else super().sentences(part, most)

    def blocks(self, part: PartView) -> list[Block]:
        if part.gate is None:
            return results(part)
        on_record = [] if part.aa_on_record is None else [aa.record_words(part.aa_on_record)]
        advice = (*part.gate.advice, *on_record)
        return [
            figures_table(part.gate),
            *([Lines("What this host can see", advice)] if advice else []),
            *results(part),
            Lines("What the intervals cover", (covered_levels(part),)),
        ]

    def chapters(self, part: PartView) -> list[Chapter | str]:
        first = Chapter("results", "Gate", tuple(self.everything(part)))
        return [first, "latency", "throughput", "cpu"]


def _gate(part: PartView, test: GateTest, findings: Sequence[Finding]) -> GateView:
    """The same rule by which the experiment ended; responses that differ leave nothing to compare."""
    samples = {
        figure: [sample(t.record, t.judgement, t.figures, figure) for cell in part.cells for t in cell.trials]
        for figure in test.figures
    }
    looks = looks_of(part)
    changes = changes_of(test, samples, looks, lambda figure: later_of(part.cells, figure), ended=part.ended)
    differ = next((figure for figure in findings if not figure.conforms), None)
    if differ is not None:
        change, why = Change.NOT_MEASURABLE, f"{differ.check}: {differ.reason}"
        alike = tuple(replace(figure, change=change, why=why) for figure in changes.figures)
        changes = Changes(change, alike, changes.notes)
    trials = [t for cell in part.cells for t in cell.every]
    planned = max((cell.cell.trials for cell in part.cells), default=0)
    most = planned if looks is None else looks.most
    spent_s = sum(own_s([trial.record for trial in trials]))
    return view_of(test, changes, part, most_blocks=most, first_look=planned, spent_s=spent_s)


def view_of(
    test: GateTest, changes: Changes, part: PartView, *, most_blocks: int, first_look: int, spent_s: float
) -> GateView:
    """The words of a gate. `spent_s`: what its trials took so far."""
    view = filled(
        GateView,
        test,
        changes,
        sentence="",
        blocks=max((figure_change.n for figure_change in changes.figures), default=0),
        most_blocks=most_blocks,
        budget_s=part.part.budget_s,
        baseline=None if test.baseline is None else test.baseline.tag,
        experiments=None if test.baseline is None else len(test.baseline.experiments),
        advice=(),
    )
    worded = replace(
        view, sentence=_sentence(view, first_look, part.ended, _basis(view, duet=part.part.duet))
    )
    return replace(worded, advice=tuple(_advice(worded, spent_s)))


def _sentence(view: GateView, first_look: int, ended: bool, basis: str) -> str:
    who, margin = f"{view.candidate} against {view.base}", percent(view.margin)
    match view.change:
        case Change.NO_WORSE:
            all_of = "the loss of every figure" if len(view.figures) > 1 else "the loss"
            return (
                f"{view.candidate} is no worse than {view.base}: {all_of} is below {margin} in the "
                f"worst case {basis}"
            )
        case Change.WORSE:
            worse = "; ".join([_short(figure) for figure in view.figures if figure.change is Change.WORSE])
            return f"{view.candidate} is worse than {view.base} by more than {margin}: {worse} {basis}"
        case Change.NOT_MEASURABLE:
            whys = dict.fromkeys(
                figure.why for figure in view.figures if figure.change is Change.NOT_MEASURABLE and figure.why
            )
            return f"{who} is not measurable here: {'; '.join(whys)}"
        case Change.CANNOT_TELL:
            if not ended:
                return f"{who}: not decided yet after {counted(view.blocks, 'block')}"
            within = "" if view.budget_s is None else f" within the budget of {duration(view.budget_s)}"
            undecided = [figure for figure in view.figures if figure.change is Change.CANNOT_TELL]
            return f"{who}: cannot tell{within}: {_why_undecided(view, undecided, first_look, basis)}"


def _why_undecided(view: GateView, undecided: list[FigureChange], first_look: int, basis: str) -> str:
    if view.baseline is not None and (view.experiments or 0) < FEWEST_EXPERIMENTS:
        stored = counted(view.experiments or 0, "stored experiment")
        return f"{stored} tagged '{view.baseline}', and an interval needs {FEWEST_EXPERIMENTS}"
    if all(figure.low is None for figure in undecided):
        return f"{counted(view.blocks, 'complete block')}, the first look is after {first_look}"
    return f"{'; '.join(_short(figure) for figure in undecided)} {basis}"


def _short(change: FigureChange) -> str:
    numbers, why = f"{label_of(change.figure)} {change_numbers(change)}", undecided_because(change)
    return f"{numbers} ({why})" if why else numbers


def undecided_because(change: FigureChange) -> str:
    """Why a figure stays undecided for a reason other than too few trials; else empty."""
    if change.change is not Change.CANNOT_TELL:
        return ""
    if change.why or not (cause := against(change)):
        return change.why
    return f"against it: {OBSTACLES.get(cause.name, cause.name)}, {bends(cause.bias.low, cause.bias.high)}"


def against(change: FigureChange) -> Source | None:
    """The largest bias that prevents a decision that the trials alone would allow."""
    if change.change is not Change.CANNOT_TELL or change.low is None or change.high is None or change.why:
        return None
    if change.low <= change.limit <= change.high:
        return None
    below = change.high < change.limit
    return max(change.sources, key=lambda source: source.up if below else source.down, default=None)


def _basis(view: GateView, *, duet: bool) -> str:
    several = f", Holm over {len(view.figures)} figures" if len(view.figures) > 1 else ""
    if view.baseline is not None:
        return (
            f"({CONFIDENCE * 100:g} %, {counted(view.blocks, 'trial')} against "
            f"{counted(view.experiments or 0, 'stored experiment')} tagged '{view.baseline}'{several})"
        )
    turns = " in turns" if duet else ""
    return f"({CONFIDENCE * 100:g} % over all looks, {counted(view.blocks, 'block')}{turns}{several})"


def change_numbers(c: FigureChange) -> str:
    """`−1.2 % [−2.5 %, +0.1 %], at worst [−2.9 %, +0.4 %]`, candidate against base; the second decides."""
    if c.ratio is None:
        return "no figure"
    if c.low is None or c.high is None:
        return f"{signed(c.ratio)} (no interval)"
    alone, worst = intervals(c)
    return f"{signed(c.ratio, _digits(c))} {alone}" + ("" if worst == alone else f", at worst {worst}")


def intervals(c: FigureChange) -> tuple[str, str]:
    """The interval of the trials alone, and with every source at its worst; empty if unknown."""
    if c.low is None or c.high is None:
        return "", ""
    digits = _digits(c)

    def ends(low: float | None, high: float | None) -> str:
        return f"[{', '.join(UNBOUNDED if end is None else signed(end, digits) for end in (low, high))}]"

    return ends(c.low, c.high), ends(c.worst_low, c.worst_high)


def _digits(c: FigureChange) -> int:
    """As many as show on which side of the margin each bound lies."""
    bounds = [end for end in (c.low, c.high, c.worst_low, c.worst_high) if end is not None]
    digits = 1
    limit = 100 * (c.limit - 1)
    while digits < MOST_DIGITS and any(
        (round(exact, digits) > limit) is not (exact > limit)
        for exact in (100 * (bound - 1) for bound in bounds)
    ):
        digits += 1
    return digits


def harmful(change: FigureChange) -> str:
    """Which way the figure gets worse."""
    return "less is worse" if FIGURE[change.figure].higher_is_better else "more is worse"


def _advice(view: GateView, spent_s: float) -> list[str]:
    advice = []
    if view.baseline is not None:
        advice.append(_less_sure(view))
    for f in view.figures:
        if against(f) is not None:
            advice.append(
                f"More trials do not decide {label_of(f.figure)}; {undecided_because(f)}. Remove that, "
                "or allow a larger --margin."
            )
    known = [
        f for f in view.figures if f.change is Change.CANNOT_TELL and f.smallest_margin and against(f) is None
    ]
    widest = max(known, key=lambda f: f.smallest_margin or 0.0, default=None)
    if view.change is Change.CANNOT_TELL and widest is not None and widest.smallest_margin is not None:
        seen = widest.smallest_margin
        if seen > view.margin:
            more = blocks_for(view, seen)
            longer = (
                f"about {more} blocks ({duration(more * spent_s / view.blocks)})"
                if more is not None and view.blocks
                else "more trials than are practical here"
            )
            advice.append(
                f"This host is too noisy for a margin of {percent(view.margin)}: with {view.most_blocks} "
                f"blocks an unchanged candidate passes from a margin of about {percent(seen)} on "
                f"({label_of(widest.figure)}). A longer --budget ({longer}), --margin {percent_up(seen)}, or "
                "a quieter host; prony aa measures what it can see."
            )
        else:
            advice.append(
                f"An unchanged candidate would pass here with {view.most_blocks} blocks (it sees a change of "
                f"about {percent(seen)}): the true change may lie near the margin."
            )
    return advice


def _less_sure(view: GateView) -> str:
    experiments = view.experiments or 0
    why = (
        f"Less sure than both builds in turns: the base tagged '{view.baseline}' ran at other times, and "
        "effects of the hour, the boot and this host's neighbours are in one side only"
    )
    if experiments < FEWEST_EXPERIMENTS:
        more = FEWEST_EXPERIMENTS - experiments
        return (
            f"{why}. Variance between experiments is unknown from {experiments}: store and tag {more} more "
            f"(prony results tag latest {view.baseline}), or measure both."
        )
    return (
        f"{why}; the interval is that of a further experiment, from the variance of {experiments} stored "
        "experiments, which includes changes of the base's own code."
    )


def percent_up(share: float) -> str:
    """As an option takes it, rounded up to half a per cent."""
    return f"{math.ceil(share * 200) / 2:g}%"


def blocks_for(view: GateView, smallest: float) -> int | None:
    """The smallest margin falls with their square root."""
    need = view.most_blocks * (math.log1p(smallest) / math.log1p(view.margin)) ** 2
    return math.ceil(need) if need <= MORE_BLOCKS else None


def figures_table(view: GateView) -> Table:
    """A row per figure: change, both its intervals, margin, outcome."""
    rows = tuple(
        Row(
            label_of(figure.figure),
            (
                TableCell(signed(figure.ratio) if figure.ratio is not None else "–"),
                *(TableCell(interval or "–") for interval in intervals(figure)),
                TableCell(signed(figure.limit), harmful(figure)),
                TableCell(figure.change.value, undecided_because(figure)),
            ),
            unit_of(figure.figure),
        )
        for figure in view.figures
    )
    numbers = map(Column, ("change", "95 % interval", "at worst", "margin"))
    columns = (*numbers, Column("outcome", number=False))
    return Table(columns, (Section(rows),), title="Figures", note=f"{view.candidate} against {view.base}")
