"""The report's chapter on CPU time: budgets as bars, flame graphs, time lines of the runtimes, tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from prony.evidence.profile import Profile, TimelineEvent
from prony.numbers import rounded_percent
from prony.plan.catalogue_roots import roots
from prony.report.blocks import Block, Chapter, Column, Lines, Picture, Row, Section, Table, TableCell
from prony.report.cell_view import CellView, TrialView
from prony.report.html.chapters import Charts, Folded, Item
from prony.report.html.drawings import Drawing
from prony.report.result import TITLE
from prony_explain.bars import budget_bars, timeline
from prony_explain.difference import LEAST_US, Difference
from prony_explain.explanation import Explanation, ExplanationView
from prony_explain.flame import Node, absent, compared, difference_svg, flame_svg, legend, tree
from prony_explain.kernel import cpu_samples
from prony_explain.rules import Part, Rules, rules_for
from prony_explain.slow import kinds, requests_of

MOST_FLAMES = 8
"""Flame graphs per page; the exports hold all profiles."""
MOST_DIFFERENCES = 6
MOST_ABSENT = 5
"""Named functions that only the cheaper server of a pair has."""
MARKED_SHARE, MOST_MARKED = 0.01, 20_000
"""Requests marked in a time line, as a share and at most."""
EVENTS = "Collections, compilations and stalls"
STALLS = ("run-queue", "throttled", "disk", "lock")
Key = tuple[Markup, str]


def keys(parts: list[Part]) -> tuple[Key, ...]:
    """Legend of the parts' colours."""
    return tuple(
        (Markup('<span class="swatch" style="background:{}"></span>').format(colour), name)
        for colour, name in legend(parts)
    )


LEAD = (
    "CPU time of the server per request. The total is measured without a profiler; its parts are the shares "
    "of one further trial with a profiler. In a flame graph a box is a function, its width the CPU time of "
    "all that it called; callers are below. Click a box to enlarge it, and the lowest box to see all again."
)


def explained_chapter(view: ExplanationView, cells: Sequence[CellView], blocks: Sequence[Block]) -> Chapter:
    """The chapter; `blocks`: those for a terminal."""
    drawn = bars(view)
    cost, *others = blocks
    contents: list[Item] = [
        cost,
        *([Charts((drawn[0],), drawn[1], "large")] if drawn is not None else []),
        *others,
    ]
    for flame in flames(view, cells):
        text = (Lines("", flame.said, listed=False),) if flame.said else ()
        drawing = Drawing("", Markup('<div class="scroll flames">{}</div>').format(Markup(flame.svg)))
        contents.append(Folded(flame.heading, (Charts((drawing,), form="large"), *text)))
    left_out = undrawn(view)
    if left_out:
        contents.append(Lines("", left_out, listed=False))
    lines = tuple(timelines(view, cells))
    if lines:
        partly = partly_watched(view, cells)
        text = (Lines("", partly, listed=False),) if partly else ()
        contents.append(Folded(EVENTS, (Charts(lines, form="middle"), *text)))
    allocated = allocated_table(view)
    if allocated is not None:
        contents.append(Folded("Allocated classes", (allocated,)))
    return Chapter("explained", TITLE, tuple(contents), LEAD)


def pictures(view: ExplanationView, cells: Sequence[CellView]) -> tuple[Picture, ...]:
    """All drawings of the chapter, as they are stored."""
    drawn = bars(view)
    budgets = [] if drawn is None else [Picture("CPU time per request", drawn[0].words, str(drawn[0].wide))]
    events = (Picture(f"{EVENTS}: {d.heading}", d.words, str(d.wide)) for d in timelines(view, cells))
    return (*budgets, *flames(view, cells), *events)


def bars(view: ExplanationView) -> tuple[Drawing, tuple[Key, ...]] | None:
    """Each server's budget on a common scale."""
    budgets = [(server.named, server.budget) for server in view.servers if server.budget is not None]
    if not budgets:
        return None
    parts = [part for part in Part if any(budget.share(part) for _, budget in budgets)]
    words = "CPU time per request by part. " + "; ".join(
        f"{name}: " + ", ".join(f"{cost.part.value} {cost.us:.1f} µs" for cost in budget.parts)
        for name, budget in budgets
    )
    return Drawing(words, Markup(budget_bars(budgets, title=words))), keys(parts)


def flames(view: ExplanationView, cells: Sequence[CellView]) -> list[Picture]:
    """A flame graph per server, then per pair, then of allocations."""
    graphs: list[Picture] = []
    every = _explained(view, cells)
    for explanation, trial in every[:MOST_FLAMES]:
        root = _tree(explanation, trial)
        if root is not None:
            words = f"Flame graph of {explanation.named}, CPU time per request"
            drawn = flame_svg(root, title=words, unit="µs")
            graphs.append(Picture(f"Flame graph: {explanation.named}", words, drawn))
    sides_of = {(explanation.server, explanation.where): (explanation, trial) for explanation, trial in every}
    for apart in view.differences[:MOST_DIFFERENCES]:
        sides = (sides_of[server, apart.where] for server in (apart.more, apart.less))
        more, less = (_tree(explanation, trial, threads=False) for explanation, trial in sides)
        if more is not None and less is not None:
            graphs.append(_difference(apart, more, less))
    for explanation, trial in every[:MOST_FLAMES]:
        profile = trial.record.evidence.profile
        if profile is not None and profile.allocation is not None and profile.allocation.total:
            each = explanation.per_request.get("allocated_bytes")
            root = tree(profile.allocation, _rules(explanation, profile), total=each)
            words = f"Flame graph of {explanation.named}, allocated bytes"
            unit = "bytes per request" if each is not None else "bytes sampled"
            drawn = flame_svg(root, title=words, unit=unit)
            graphs.append(Picture(f"Allocations: {explanation.named}", words, drawn))
    return graphs


def undrawn(view: ExplanationView) -> tuple[str, ...]:
    """Note on flame graphs that are left out."""
    notes = []
    if len(view.servers) > MOST_FLAMES:
        notes.append(f"Flame graphs are drawn for the first {MOST_FLAMES} of {len(view.servers)} profiles.")
    if len(view.differences) > MOST_DIFFERENCES:
        pairs = len(view.differences)
        notes.append(
            f"Differential flame graphs are drawn for the first {MOST_DIFFERENCES} of {pairs} pairs."
        )
    if notes:
        notes.append("The export formats collapsed, pprof and jfr hold every profile.")
    return (" ".join(notes),) if notes else ()


def _difference(apart: Difference, more: Node, less: Node) -> Picture:
    """The graph of the costlier server, coloured by its difference from the cheaper one."""
    where = f", {apart.where}" if apart.where else ""
    words = f"Differential flame graph of {apart.more} against {apart.less}{where}, CPU time per request"
    notes = [
        f"A box is CPU time of {apart.more}: red where it needs more than {apart.less} in the same function "
        "under the same callers, blue where less. Threads are merged."
    ]
    gone = absent(more, less)
    if sum(gone.values()) >= LEAST_US:
        notes.append(f"Without a box: {_absent(gone, apart)}")
    drawn = difference_svg(compared(more, less), title=words, unit="µs")
    return Picture(f"Difference: {apart.more} against {apart.less}{where}", words, drawn, tuple(notes))


def _absent(gone: Mapping[str, float], apart: Difference) -> str:
    """The cheaper server's own functions, under callers that both have."""
    named = [f"{us:.1f} in {name}" for name, us in gone.items() if us >= LEAST_US][:MOST_ABSENT]
    more = " and others" if len(gone) > len(named) else ""
    return (
        f"{sum(gone.values()):.1f} µs per request of {apart.less}, in functions that {apart.more} does not "
        f"call from there: {', '.join(named)}{more}."
    )


def timelines(view: ExplanationView, cells: Sequence[CellView]) -> list[Drawing]:
    """Events of each runtime over the window of its explained trial."""
    drawings = []
    for server, trial in _explained(view, cells):
        profile = trial.record.evidence.profile
        if profile is None:
            continue
        slow_s = slowest(trial)
        events = [*profile.timeline, *_stalls(profile, slow_s)]
        if events or slow_s:
            until_s = max([profile.ended_s, *(e.start_s + e.duration_s for e in events)])
            words = (
                f"{server.named}: collections, compilations, stalls and slowest requests over the window of "
                "its explained trial"
            )
            drawn = timeline(events, until_s, silences_s=silences(trial), slow_s=slow_s, title=words)
            drawings.append(Drawing(words, Markup(drawn), heading=server.named))
    return drawings


def partly_watched(view: ExplanationView, cells: Sequence[CellView]) -> tuple[str, ...]:
    """Notes on lanes that cover a part of the window only."""
    profiles = (trial.record.evidence.profile for _, trial in _explained(view, cells))
    if any(p is not None and p.lock_waits is not None for p in profiles):
        return ("Waits for a lock are recorded in the last slice of the window only.",)
    return ()


def slowest(trial: TrialView) -> list[tuple[float, float]]:
    """The slowest 1 % of the requests: (start, duration) in seconds."""
    evidence = trial.record.evidence
    known = requests_of(evidence.engine, evidence.profile)
    if known is None:
        return []
    slow = known.slowest(MARKED_SHARE, MOST_MARKED)
    return list(zip(slow.starts_s, slow.lengths_s, strict=True))


def _stalls(profile: Profile, slow_s: Sequence[tuple[float, float]]) -> list[TimelineEvent]:
    """Waits of threads and disk reads, as long as the slow requests; empty without these."""
    if not slow_s:
        return []
    watched, _ = kinds(profile, min(length for _, length in slow_s))
    return [event for kind in watched if kind.kind in STALLS for event in kind.events]


def silences(trial: TrialView) -> list[tuple[float, float]]:
    """The longest spans of the window without a completed request: (start, duration) in seconds."""
    engine = trial.record.evidence.engine
    if engine is None or engine.window is None:
        return []
    opened_ms = engine.window.opened_ms
    return [((gap.start_ms - opened_ms) / 1000, gap.duration_ms / 1000) for gap in engine.window.gaps]


def allocated_table(view: ExplanationView) -> Table | None:
    """Classes with the most allocated bytes, by server."""
    rows = [
        Row(allocated.name, (TableCell(server.named), TableCell(rounded_percent(allocated.share, 1))))
        for server in view.servers
        for allocated in server.allocated
    ]
    columns = (Column("Server", number=False), Column("Share of the bytes"))
    return Table(columns, (Section(tuple(rows)),), heading="Class", caption="Allocated") if rows else None


def _explained(view: ExplanationView, cells: Sequence[CellView]) -> list[tuple[Explanation, TrialView]]:
    with_profile = [cell for cell in cells if cell.explained]
    return [
        (explanation, cell.explained[-1])
        for explanation, cell in zip(view.servers, with_profile, strict=True)
    ]


def _tree(explanation: Explanation, trial: TrialView, *, threads: bool = True) -> Node | None:
    """In µs per request; None without samples or a measured cost."""
    profile = trial.record.evidence.profile
    if profile is None or explanation.budget is None:
        return None
    rules = _rules(explanation, profile)
    samples = cpu_samples(profile, rules)
    if samples is None or not samples.total:
        return None
    seen = 1.0 if explanation.budget.seen_share is None else min(1.0, explanation.budget.seen_share)
    return tree(samples, rules, total=explanation.budget.cpu_us, seen=seen, threads=threads)


def _rules(explanation: Explanation, profile: Profile) -> Rules:
    return rules_for(profile.runtime, explanation.server, roots("servers"))
