"""Servers compared with each other: every pair in every figure, positions, and both in words. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from statistics import fmean

from prony.analysis import compared_figure, later, questions, sample
from prony.compare import MARGINS, Comparison, Later, Looks, Margins, Pair, compare
from prony.compare.bias import POSITION, Source
from prony.compare.claim import Claim
from prony.compare.levels import Levels, levels
from prony.compare.position import PositionEffect
from prony.compare.sentence import basis, for_window, sentence
from prony.compare.shared import order_of_one
from prony.evidence.engine import IntervalRow
from prony.experiment.budget import own_s
from prony.judge.checks.host import HostLimits
from prony.judge.checks.steady import SteadyWindowLimits
from prony.judge.cross_trial import JudgedTrial, cross_trial
from prony.judge.drift import plateau_of
from prony.judge.figures import FIGURE
from prony.judge.finding import Finding
from prony.plan.load import OpenLoad, SteadyWindow
from prony.plan.processes import name_within
from prony.report import aa
from prony.report.blocks import Lines
from prony.report.cell_view import HEADLINE, CellView, TrialView
from prony.report.labels import label_of
from prony.report.out import filled
from prony.report.result import PairView, PartView, PositionView, SourceView
from prony.report.shape import load_samples
from prony.report.wording import bends, ratio, within

COMPARED = (HEADLINE, "p99_ms", "server_cpu_us_per_request", "peak_rss_mib", "time_to_ready_s")
"""The figures of a comparison that are compared pair by pair."""
FEWEST = 3
"""Trials per server from which a ratio is worth an interval."""


def _limits(trials: Sequence[TrialView]) -> Mapping[str, float]:
    return trials[0].judgement.limits if trials else {}


def across_trials(part: PartView) -> tuple[Finding, ...]:
    """What the trials that are compared with each other say about each other; each sentence once."""
    by_reason: dict[tuple[str, str], Finding] = {}
    groups = questions_of(part)
    for where, group in groups.items():
        trials = [
            JudgedTrial(cell.cell.server, trial.record.block, trial.record.evidence)
            for cell in group
            for trial in cell.counting
        ]
        judged = HostLimits.among(_limits([trial for cell in group for trial in cell.counting]))
        for finding in cross_trial(trials, judged, group[0].cell.trial.workload.responses_differ):
            reason = f"{where}: {finding.reason}" if len(groups) > 1 else finding.reason
            by_reason.setdefault((finding.check, reason), finding.model_copy(update={"reason": reason}))
    return tuple(by_reason.values())


def pairs_of(part: PartView) -> list[PairView]:
    """Comparisons within each workload and load, of the pairs that the plan names or of all."""
    pairs: list[PairView] = []
    groups = questions_of(part)
    for where, group in groups.items():
        servers = [cell.cell.server for cell in group]
        if len(set(servers)) < 2:
            continue
        if part.part.shape == "comparison" and part.part.follows is None:
            figures: Sequence[str] = COMPARED
        elif part.part.follows is not None:
            figures = ("p50_ms", "p99_ms")
        elif max(len(cell.trials) for cell in group) < FEWEST:
            continue
        else:
            figures = (compared_figure(group[0].cell.trial.load),)
        for figure in figures:
            pairs += figure_pairs(
                group,
                figure,
                among=part.part.comparisons,
                looks=looks_of(part),
                margins=Margins(part.part.band, part.part.at_least),
                where=where if len(groups) > 1 else "",
                order_of=_order_of(part, group, figure),
            )
    return pairs


def _order_of(part: PartView, group: Sequence[CellView], figure: str) -> Callable[[str, str], Source] | None:
    """Cells of a workload and load whose processes ran other loads, too."""
    sharing = part.part.share_process
    if sharing is None:
        return None
    of = group[0].cell.trial.workload.name
    beside = [c for c in part.cells if sharing == "workloads" or c.cell.trial.workload.name == of]
    samples = load_samples(beside, figure, sharing)
    return partial(order_of_one, samples, load=name_within(group[0].cell, sharing))


def questions_of(part: PartView) -> dict[str, list[CellView]]:
    """Cells that answer the same question, by its name."""
    views = {view.cell.id: view for view in part.cells}
    groups = questions(part.part, [view.cell for view in part.cells])
    return {where: [views[cell.id] for cell in group] for where, group in groups.items()}


def looks_of(part: PartView) -> Looks | None:
    most = part.part.until_clear
    return None if most is None else Looks(min(view.cell.trials for view in part.cells), most)


def positions_of(part: PartView) -> list[PositionView]:
    """The effect of position on the figure that each question is about."""
    groups = questions_of(part)
    positions = []
    for name, group in groups.items():
        compared = _compared(group, compared_figure(group[0].cell.trial.load))
        if compared is not None and (position := compared.position) is not None:
            where = name if len(groups) > 1 else ""
            sentence = within(where, _position_words(compared, position))
            numbers = (position.ratio, position.low, position.high, position.trials, position.found)
            positions.append(PositionView(compared.figure, *numbers, sentence, where))
    return positions


def figure_pairs(
    cells: Sequence[CellView],
    figure: str,
    *,
    among: Sequence[tuple[str, str]] | None = None,
    looks: Looks | None = None,
    margins: Margins = MARGINS,
    where: str = "",
    order_of: Callable[[str, str], Source] | None = None,
) -> list[PairView]:
    """Every pair of servers in a figure; empty where no trial has it."""
    compared = _compared(cells, figure, among=among, looks=looks, margins=margins, order_of=order_of)
    if compared is None:
        return []
    by_server = {cell.cell.server: cell for cell in cells}
    return [_pair_view(pair, compared, by_server, where) for pair in compared.pairs]


def _pair_view(pair: Pair, compared: Comparison, by_server: Mapping[str, CellView], where: str) -> PairView:
    both = [by_server[side] for side in (pair.a, pair.b)]
    conditions = {(c.check, c.code): c for cell in both for c in cell.provided}
    duet = all(trial.record.evidence.turns is not None for cell in both for trial in cell.counting)
    return filled(
        PairView,
        pair,
        sources=tuple(SourceView(s.name, s.bias.low, s.bias.high, s.cancelled) for s in pair.sources),
        provided=tuple(conditions.values()),
        sentence=sentence(pair),
        window_sentence=for_window(pair),
        basis="" if pair.low is None else basis(pair, compared.family, duet=duet),
        where=where,
    )


def _compared(
    cells: Sequence[CellView],
    figure: str,
    *,
    among: Sequence[tuple[str, str]] | None = None,
    looks: Looks | None = None,
    margins: Margins = MARGINS,
    order_of: Callable[[str, str], Source] | None = None,
) -> Comparison | None:
    """None when no trial has the figure."""
    trials = [trial for cell in cells for trial in cell.trials]
    if not any(figure in trial.figures for trial in trials):
        return None
    samples = [sample(t.record, t.judgement, t.figures, figure) for t in trials]
    servers = list(dict.fromkeys(cell.cell.server for cell in cells))
    took_s = own_s([trial.record for trial in trials])
    return compare(
        samples,
        figure,
        servers=servers,
        among=among,
        looks=looks,
        margins=margins,
        later=later_of(cells, figure),
        block_s=fmean(took_s) * len(servers) if took_s else None,
        order_of=order_of,
    )


def later_of(cells: Sequence[CellView], figure: str) -> Later | None:
    """Residual drift of a figure of these cells."""
    trials = {cell.cell.server: [t.record.evidence for t in cell.counting] for cell in cells}
    counting = [trial for cell in cells for trial in cell.counting]
    return later(trials, figure, SteadyWindowLimits.among(_limits(counting)))


def with_plateau(cell: CellView) -> CellView:
    """The cell with the residual drift of its figure, where a plateau is claimed."""
    figure = compared_figure(cell.cell.trial.load)
    later = later_of([cell], figure)
    if later is None:
        return cell
    plateau = plateau_of(later.coming.get(cell.cell.server), later.sign, later.horizon_s)
    return replace(cell, plateau=plateau)


def _position_words(compared: Comparison, effect: PositionEffect) -> str:
    numbers = ", ".join(f"{(end - 1) * 100:+.1f}" for end in (effect.low, effect.high))
    text = (
        f"Position in the block changes {label_of(compared.figure)} by {(effect.ratio - 1) * 100:+.1f} % per "
        f"place [{numbers}] (95 %, {effect.trials} trials)"
    )
    if not effect.found:
        return f"{text}: no effect detected."
    moved = [
        (pair, source.bias) for pair in compared.pairs for source in pair.sources if source.name == POSITION
    ]
    if not moved:
        return f"{text}: an effect. The order was balanced, so it cancels in the ratios and widens intervals."
    by = ", ".join(f"{pair.a} ÷ {pair.b} by {bends(bias.low, bias.high)}" for pair, bias in moved)
    return f"{text}: an effect. The order was not balanced, so it is in the budget: it may move {by}."


MOST_DRAWN = 8
"""Maximum number of servers for which every pair is printed and drawn."""


def drawn_pairs(part: PartView) -> tuple[PairView, ...]:
    """Pairs to show; of many servers, each with the best and with its neighbour in rank."""
    if len(part.servers) <= MOST_DRAWN:
        return part.pairs
    figure = part.headline_figure
    known = [(f.median, c.cell.server) for c in part.cells if (f := c.figure(figure)) is not None]
    order = [server for _, server in sorted(known, reverse=not lower_is_better(figure))]
    wanted = {frozenset((order[0], server)) for server in order} if order else set()
    wanted |= set(map(frozenset, pairwise(order)))
    return tuple(pair for pair in part.pairs if frozenset((pair.a, pair.b)) in wanted)


def turned(pair: PairView) -> PairView:

    def inverse(value: float | None) -> float | None:
        return 1 / value if value else None

    return replace(
        pair,
        a=pair.b,
        b=pair.a,
        ratio=inverse(pair.ratio),
        low=inverse(pair.high),
        high=inverse(pair.low),
        worst_low=inverse(pair.worst_high),
        worst_high=inverse(pair.worst_low),
        later_low=inverse(pair.later_high),
        later_high=inverse(pair.later_low),
    )


def better_first(pair: PairView) -> PairView:
    """With the better server first (without a direction: the larger value)."""
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


def pair_lines(part: PartView, pairs: Sequence[PairView]) -> list[Lines]:
    """A sentence per pair about what the part asks, a line per pair about everything else."""
    figures = headline_figures(part)
    first, said_once = in_words([pair for pair in pairs if pair.figure in figures])
    others = [better_first(pair) for pair in pairs if pair.figure not in figures and pair.ratio is not None]
    every = sum(pair.figure in figures for pair in part.pairs)
    left_out = f"{len(first)} of {every}: each with the best median and the next one down"
    note = "; ".join(filter(None, (left_out if len(first) < every else "", said_once)))
    made = [Lines("Pair by pair", first, note=note, marked=True)] if first else []
    if others:
        note = "first ÷ second, with the 95 % interval"
        made.append(Lines("Other ratios", tuple(map(ratio_line, others)), note=note, marked=True))
    about = coverage(part)
    return [*made, about] if about is not None else made


def headline_figures(part: PartView) -> tuple[str, ...]:
    """Headline figures of the part's loads."""
    compared = {pair.figure for pair in part.pairs}
    figures = dict.fromkeys(cell.headline_figure for cell in part.cells)
    return tuple(figure for figure in figures if figure in compared) or (HEADLINE,)


def coverage(part: PartView) -> Lines | None:
    """What the intervals of a part cover and what they do not; nothing without an interval."""
    if all(pair.low is None for pair in part.pairs):
        return None
    sentences = [covered_levels(part)]
    if part.shared:
        what = "workloads and loads" if part.part.share_process == "workloads" else "loads"
        sentences.append(
            f"The {what} of a server shared processes: a slow process is slow under all of them, so "
            f"the ratios under different {what} are not independent of each other."
        )
    sentences += [position.sentence for position in part.positions]
    if part.levels is not None:
        sentences.append(levels_words(part.levels))
    if part.aa_on_record is not None:
        sentences.append(aa.record_words(part.aa_on_record))
    return Lines("What the intervals cover", tuple(sentences))


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
    """The sentence of each pair; and what all intervals rest on, where that is the same."""
    bases = {pair.basis for pair in pairs if pair.basis}
    sentences = tuple(
        within(pair.where, pair.sentence) + (f" ({pair.basis})" if pair.basis and len(bases) > 1 else "")
        for pair in pairs
    )
    return sentences, f"intervals: {bases.pop()}" if len(bases) == 1 else ""


def ratio_line(pair: PairView) -> str:
    numbers, word = ratio(pair.ratio), "no interval"
    if pair.low is not None and pair.high is not None:
        numbers += f" [{ratio(pair.low)}, {ratio(pair.high)}]"
        word = CLAIM_WORDS[pair.claim]
    return within(pair.where, f"{label_of(pair.figure)}, {pair.a} ÷ {pair.b}: {numbers} {word}")


STRETCHES = 3
"""Number of stretches of a single window, used as windows of a process."""
FEWEST_ROWS = 3
WHOLE = 0.99
"""Share of the planned length that windows must have had: those of an interrupted trial are others."""


def levels_of(cells: Sequence[CellView]) -> Levels | None:
    """Of throughput; None in an open loop, and where the rows of the windows do not suffice."""
    plan = cells[0].cell.trial
    measured = plan.measured
    if not isinstance(measured, SteadyWindow) or isinstance(plan.load, OpenLoad):
        return None
    owned = all(trial.record.evidence.server.owned for cell in cells for trial in cell.counting)
    if any(cell.cell.trial.measured != measured for cell in cells) or not owned:
        return None
    many = measured.windows if measured.windows > 1 else STRETCHES
    least_s = 0.0 if measured.precision is not None else WHOLE * measured.length_s
    used = [
        [(trial, cut) for trial in cell.counting if (cut := stretches(trial, many, least_s))]
        for cell in cells
    ]
    timed = [_times_s(trial) for cell in used for trial, _ in cell]
    if not timed:
        return None
    length_s = statistics.median(length for _, length in timed)
    return levels(
        [[cut for _, cut in cell] for cell in used],
        window_s=length_s / many,
        process_s=statistics.median(spent - length for spent, length in timed),
        of_one_window=measured.windows == 1,
    )


def _times_s(trial: TrialView) -> tuple[float, float]:
    record = trial.record
    window = record.evidence.engine.window if record.evidence.engine is not None else None
    length_s = window.duration_s if window is not None else 0.0
    return (record.ended_at - record.started_at).total_seconds(), length_s


def stretches(trial: TrialView, many: int, least_s: float = 0.0) -> list[float]:
    """Requests per second of a process's windows, or of stretches of a single window; empty if too short."""
    engine = trial.record.evidence.engine
    window = engine.window if engine is not None else None
    if engine is None or window is None or not window.complete or window.duration_s < max(least_s, 1e-9):
        return []
    parts: list[list[IntervalRow]] = [[] for _ in range(many)]
    for row in engine.rows:
        middle_ms = row.t_ms - row.duration_ms / 2
        at = math.floor((middle_ms - window.opened_ms) / (window.duration_s * 1000) * many)
        if row.in_window and row.duration_ms > 0 and 0 <= at < many:
            parts[at].append(row)
    if min(map(len, parts)) < FEWEST_ROWS:
        return []
    rates = [sum(r.completed for r in part) / sum(r.duration_ms for r in part) * 1000 for part in parts]
    return rates if min(rates) > 0 else []


def levels_words(levels: Levels) -> str:
    """Variance by level and the cheapest mix, in a line."""
    best, now, window_s = levels.cheapest_windows, levels.windows, levels.window_s
    parts = f"windows of {window_s:.0f} s in one process"
    if levels.of_one_window:
        name = "thirds" if now == STRETCHES else "parts"
        parts = f"{name} of a process's window ({window_s:.1f} s each)"
    split = (
        f"Variance by level: {levels.between * 100:.1f} % between processes, {levels.within * 100:.1f} % "
        f"between {parts} ({levels.processes} processes; standard "
        f"deviations of throughput). A process costs {levels.process_s:.0f} s besides its windows"
    )
    if levels.between_low <= 0:
        return f"{split}. Too few processes to say how many windows are cheapest."
    saved = ""
    if best != now:
        share = 1 - 1 / levels.relative_time(now)
        saved = f" ({share * 100:.0f} % less time for the same width)"
    if levels.of_one_window:
        return f"{split}: a window of {best * window_s:.0f} s per process is the cheapest{saved}."
    if best == now:
        return f"{split}: {now} windows of this length are the cheapest."
    many = "1 window" if best == 1 else f"{best} windows"
    verb = "is" if best == 1 else "are"
    return f"{split}: {many} of this length per process ({best * window_s:.0f} s) {verb} the cheapest{saved}."
