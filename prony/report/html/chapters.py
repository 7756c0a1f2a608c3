"""Chapters of a part's page after its answer, as its shape lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from prony.judge.finding import Kind
from prony.report import comparison, history, pairs, tidy
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
from prony.report.cell_view import HEADLINE, TrialView
from prony.report.html import charts, ratio_rows, sweep_drawings
from prony.report.html.drawings import Drawer, Drawing, image, socket_states, sockets
from prony.report.html.ratio_rows import RatioTable
from prony.report.html.theme import DASH, TRIANGLE, mark_of, swatch
from prony.report.intervals import trial_cell
from prony.report.labels import named
from prony.report.result import TITLE, Drawn, PartView
from prony.report.shapes import FindingGroup, finding_groups, hosts, shape_of
from prony.report.wording import counted, good_to

BESIDE = ("p50_ms", "p99_ms", "time_to_steady_s")
"""Further figures of a trial."""
MANY_TRIALS = 40
"""Maximum trials drawn over time; beyond it only median trials are."""
Key = tuple[Markup, str]


@dataclass(frozen=True, slots=True)
class Charts:
    """A large chart, or a grid of small ones."""

    drawings: tuple[Drawing, ...]
    keys: tuple[Key, ...] = ()
    form: str = "small"
    """large, middle or small."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings that do something to a figure, each with what to do."""

    groups: tuple[FindingGroup, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """What is shown on request."""

    summary: str
    items: tuple[Item, ...]
    lead: str = ""


Item = Block | Charts | Findings | Folded | RatioTable


def chapters(drawer: Drawer) -> list[Chapter]:
    part = drawer.part
    if part.failure:
        return [Chapter("results", "Results", (Lines("", (part.failure,)),))]
    own = [DRAWN[made](drawer) if isinstance(made, str) else made for made in shape_of(part).chapters(part)]
    drawings = [made for name in shape_of(part).charts for made in ABOVE[name](drawer)]
    if drawings:
        published = part.layout == "matrix" and any(cell.cell.published for cell in part.cells)
        keys = (*_legend(drawer), *(((DASH, "dashed: published, on other hardware"),) if published else ()))
        own[0] = replace(own[0], items=(Charts(tuple(drawings), keys, "middle"), *own[0].items))
    made = [*own, _explained(part), _hosts(part), _findings(part), _trials(part)]
    return [made for made in made if made.items]


def pictures(drawer: Drawer) -> tuple[Item, ...]:
    """What shows the answer of a part before its rows: a law, a search, the changes of a gate."""
    part = drawer.part
    picture = "" if part.failure else shape_of(part).picture
    if picture == "law" and (law := sweep_drawings.law(drawer)) is not None:
        return (Charts((law,), _legend(drawer), "large"),)
    if picture == "capacity" and (drawing := sweep_drawings.capacity(drawer)) is not None:
        return (Charts((drawing,), sweep_drawings.capacity_keys(drawer), "large"),)
    if picture == "throughput":
        return tuple(item for item in _throughput(drawer).items if isinstance(item, Charts))
    table = ratio_rows.changes(part.gate) if picture == "changes" and part.gate is not None else None
    return () if table is None else (table,)


def _charts(
    drawer: Drawer, id: str, title: str, drawn: Sequence[Drawing | None], lead: str, form: str = "small"
) -> Chapter:
    drawings = tuple(drawing for drawing in drawn if drawing is not None)
    return Chapter(id, title, (Charts(drawings, _legend(drawer), form),) if drawings else (), lead)


def _legend(drawer: Drawer) -> tuple[Key, ...]:
    servers = drawer.part.servers
    return tuple((mark_of(drawer.places[server.address]), server.address) for server in servers)


def _explained(part: PartView) -> Chapter:
    view = part.explanation
    if view is None:
        return Chapter("explained", TITLE, ())
    if isinstance(view, Drawn):
        return view.chapter()
    pictures = (
        Folded(p.heading, (Charts((image(p),), form="large"), Lines("", p.said, listed=False)))
        for p in view.pictures
    )
    return Chapter("explained", TITLE, (*view.blocks, *pictures))


def _hosts(part: PartView) -> Chapter:
    lead = (
        "Each load host by its own engine, each link by its host's counters. The round trip before the load "
        "is of the path and both kernels; under load it is an upper bound."
    )
    return Chapter("hosts", "Hosts", tuple(hosts(part)), lead)


def _ratios(drawer: Drawer) -> Chapter:
    part = drawer.part
    if not part.pairs:
        return Chapter("ratios", "Pairs", ())
    first, others = (ratio_rows.pairs(part, headline=headline) for headline in (True, False))
    lead = (
        "A pair differs where the interval excludes 1 with every source of the budget at its worst. Shaded: "
        f"no practical difference, ± {part.part.band * 100:g} %. Hollow: open."
        if first is not None
        else "No pair of servers has enough trials for an interval."
    )
    if len(pairs.drawn_pairs(part)) < len(part.pairs):
        lead += " Drawn: each server with the best median, and with the next one down."
    items: list[Item] = [first] if first is not None else []
    if others is not None:
        items.append(Folded("Other figures", (others,)))
    sentences, said_once = pairs.in_words(part.pairs)
    sentence_lines = (Lines("", sentences, marked=True),)
    items.append(Folded("All pairs in words", sentence_lines, said_once and f"{said_once}."))
    about = pairs.coverage(part)
    return Chapter("ratios", "Pairs", (*items, *([about] if about is not None else [])), lead)


def _latency(drawer: Drawer) -> Chapter:
    of = "From the intended send" if drawer.part.is_open else "From the actual send"
    lead = (
        f"{of} to the last byte of the response. Thick: each server's median trial. Thin: the others; "
        "percentiles are never averaged over trials. A line ends where the samples stop supporting it."
    )
    drawings = [drawer.latency(drawer.part.cells)]
    return _charts(drawer, "latency", "Latency by percentile", drawings, lead, "large")


def _throughput(drawer: Drawer) -> Chapter:
    part = drawer.part
    many = len(part.trials) > MANY_TRIALS
    drawings = tuple(drawer.throughput(all_of_them=not many))
    requests = f"{comparison.published_requests(part.trials):,}"
    owned = any(trial.record.evidence.server.owned for trial in part.trials)
    keys: list[Key] = [(swatch("window"), "measured window"), (DASH, "change of level")]
    lead = "Completed requests per second, without the first users' load. Only the window counts."
    if owned:
        keys = [(swatch("settle"), "settling on the server's own CPUs"), *keys]
    if any(charts.mark_s(trial) is not None for trial in part.trials):
        keys.append((TRIANGLE, f"request {requests}"))
        lead += f" Triangle: where a run of {requests} requests to a fresh process would have ended."
    if many:
        lead += f" Drawn: the median trial of each server, of {counted(len(part.trials), 'trial')}."
    form = "large" if len(part.trials) == 1 else "small"
    items = (Charts(drawings, tuple(keys), form),) if drawings else ()
    return Chapter("throughput", "Throughput over time", items, lead)


def _start_up(drawer: Drawer) -> Chapter:
    lead = "A mark per trial; the bar ends at the median."
    return _charts(drawer, "start-up", "Start-up and memory", drawer.start_up(), lead)


def _cpu(drawer: Drawer) -> Chapter:
    lead = (
        "Share of the granted CPU time over the window, a mark per trial. Solid: server. Hollow: load "
        "generator. A throughput is the server's own only where the server is the busy one."
    )
    return _charts(drawer, "cpu", "CPU in use", [drawer.cpu()], lead, "large")


def _sockets(drawer: Drawer) -> Chapter:
    drawings = tuple(sockets(drawer))
    lead = (
        "TCP sockets of the host by state, as ss -s counts them, client and server together, in the "
        "median trial. A rising “timewait” means that connections are opened again and again."
    )
    keys = tuple((mark, name) for name, mark in socket_states())
    return Chapter("sockets", "Sockets over time", (Charts(drawings, keys),) if drawings else (), lead)


def _history(drawer: Drawer) -> Chapter:
    part, title = drawer.part, "Published and measured"
    table = history.history_table(part)
    if table is None:
        return Chapter("history", title, ())
    named_sources = ". ".join(history.sources(part))
    lead = f"{named_sources}. Compare order and distances: hollow is published, solid measured."
    made = _charts(drawer, "history", title, drawer.published(), lead)
    return replace(made, items=(*made.items, replace(table, title="", note="", caption=title)))


DRAWN: Mapping[str, Callable[[Drawer], Chapter]] = {
    "ratios": _ratios,
    "latency": _latency,
    "throughput": _throughput,
    "start-up": _start_up,
    "cpu": _cpu,
    "sockets": _sockets,
    "history": _history,
}
ABOVE: Mapping[str, Callable[[Drawer], Sequence[Drawing]]] = {
    "sweeps": sweep_drawings.sweeps,
    "bounds": Drawer.bounds,
    "times": Drawer.times,
}


def _findings(part: PartView) -> Chapter:
    groups, fine = finding_groups(part), finding_groups(part, fine=True)
    items: list[Item] = []
    lead = "No check detected a bias of a figure." if part.trials else ""
    if groups:
        lead = "What does not conform, what may bend a figure, and what cannot be known."
        items.append(Findings(groups))
    if fine:
        columns = tuple(Column(name, number=False) for name in ("In", "Limit", "For example"))
        rows = tuple(
            Row(g.check, words(g.where or "the trial", g.limit, *g.reasons[:1])) for g in fine if g.reasons
        )
        table = Table(columns, (Section(rows),), heading="Check", caption="Checks that found nothing")
        items.append(Folded("Checks that found nothing", (table,)))
    return Chapter("findings", "Checks", tuple(items), lead)


def _trials(part: PartView) -> Chapter:
    every = tidy.every(part)
    explained = any(_told(trial) for _, trial in every)
    columns = (
        Column("Server" if len(part.cells) == len(part.servers) else "Cell", number=False),
        Column("Started", number=False),
        Column(named(HEADLINE)),
        Column("good to", number=False),
        *(Column(named(figure)) for figure in BESIDE),
        Column("Bound by", number=False),
        Column("Conforms", number=False),
        *([Column("Why", number=False)] if explained else []),
    )
    rows = tuple(
        Row(
            f"{trial.record.block + 1}{' control' if trial.record.kind == 'control' else ''}",
            (
                TableCell(cell.label),
                TableCell(f"{trial.record.started_at:%H:%M:%S}"),
                _figure(HEADLINE, trial),
                _good_to(trial),
                *(_figure(figure, trial) for figure in BESIDE),
                TableCell(trial.judgement.bound_by),
                _conforms(trial, tidy.is_repeated(cell, trial)),
                *([TableCell(_told(trial))] if explained else []),
            ),
            server=trial.record.server,
        )
        for cell, trial in every
    )
    table = Table(columns, (Section(rows),), heading="Block", caption="Trials")
    lead = "" if part.external else "In the order in which they ran, drawn at random within each block."
    return Chapter("trials", "Trials", (table,) if rows else (), lead)


def _told(trial: TrialView) -> str:
    return " ".join(filter(None, (trial.why_not, *trial.record.notes)))


def _figure(figure: str, trial: TrialView) -> TableCell:
    return trial_cell(figure, trial) if trial.conforms else TableCell("–")


def _good_to(trial: TrialView) -> TableCell:
    estimate = trial.estimates.get(HEADLINE)
    return TableCell("–" if estimate is None else good_to(*estimate.uncertainty.worst))


def _conforms(trial: TrialView, repeated: bool) -> TableCell:
    kind = Kind.FINE if trial.conforms else Kind.NOT_CONFORMING
    return TableCell(f"{KIND_WORDS[kind]}, repeated" if repeated else KIND_WORDS[kind], kind=kind)
