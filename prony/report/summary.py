"""What the records of an experiment come to, in words and cells: for the terminal, the page and the JSON.

Pure. Must not know how a cell is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from prony.judge.figures import FIGURE, published_mark
from prony.judge.finding import Status
from prony.report.labels import STEADY_OVER_PUBLISHED, label_of, rounded, unit_of
from prony.report.model import SEVERITY, ExperimentView, PairView, Spread, TrialView, spread
from prony.report.wording import counted

HEADLINE = "requests_per_s"
"""The figure that a pair's first sentence is about."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One server's figure: the median and its range, as text; `text` alone for words."""

    text: str
    spread: str = ""
    best: bool = False
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One figure over all servers, in the order of the plan."""

    label: str
    unit: str
    cells: tuple[Cell, ...]
    figure: str = ""
    measured: bool = True
    """False for what others published: no mark of ours belongs on it."""


@dataclass(frozen=True, slots=True)
class Section:
    """Rows that belong together."""

    title: str
    rows: tuple[Row, ...]
    note: str = ""


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
        (HEADLINE, "mean_ms", "p50_ms", "p90_ms", "p99_ms", "p999_ms", "time_to_steady_s"),
    ),
    (
        "Sessions",
        "users who walked the scenario, from arrival to the end of the last answer",
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
    ("TLS", "over the whole run", ("handshakes_per_request", "resumed_share")),
    (
        "Cost",
        "over the measured window",
        ("server_cpu_us_per_request", "peak_rss_mib", "requests_per_s_per_gib"),
    ),
    (
        "Services",
        "what the servers stand on, counted apart from them",
        ("service_cpu_us_per_request", "service_cpu_share", "service_rss_mib"),
    ),
    (
        "As the published protocol would print",
        "{n} requests to a fresh process",
        ("published_requests_per_s", "published_mean_ms", STEADY_OVER_PUBLISHED),
    ),
)
EVIDENCE_FIGURES = ("server_cpu_share", "client_cpu_share")


def overall(view: ExperimentView) -> Status:
    """The verdict on the experiment: invalid when a server has no trial that counts, else the worst that
    counts.

    A rejected trial beside good ones makes it suspect: its server's figures rest on fewer trials than ran.
    """
    if not view.servers or any(not counting(view, server.address) for server in view.servers):
        return Status.INVALID
    statuses = [t.judgement.verdict for t in view.trials if t.counts]
    if rejected(view):
        statuses.append(Status.SUSPECT)
    return min(statuses, key=lambda s: SEVERITY[s])


def counting(view: ExperimentView, server: str) -> tuple[TrialView, ...]:
    """The trials of a server whose figures may be printed."""
    return tuple(t for t in view.of(server) if t.counts)


def rejected(view: ExperimentView) -> tuple[TrialView, ...]:
    """Trials (controls apart) that may not be printed; each knows its cause."""
    return tuple(t for t in view.trials if t.record.kind == "trial" and not t.counts)


def verdict_words(view: ExperimentView) -> str:
    """The verdict as a sentence."""
    trials = [t for t in view.trials if t.record.kind == "trial"]
    if not trials:
        return "Nothing was measured."
    bare = [s.address for s in view.servers if not counting(view, s.address)]
    out = len(rejected(view))
    if len(trials) == out == 1:
        return "No figure is printed: the trial may not be used."
    if bare and len(bare) == len(view.servers):
        return f"No figure is printed: none of the {counted(len(trials), 'trial')} may be used."
    if bare:
        return (
            f"No figure for {join(bare)}: none of {'its' if len(bare) == 1 else 'their'} trials may be used. "
            f"{len(trials) - out} of {counted(len(trials), 'trial')} count."
        )
    doubtful = sum(1 for t in trials if t.counts and t.judgement.verdict is Status.SUSPECT)
    unsure = sum(1 for t in trials if t.counts and t.judgement.verdict is Status.UNKNOWN)
    fine = len(trials) - out - doubtful - unsure
    if fine == len(trials):
        return "The trial is valid." if fine == 1 else f"All {fine} trials are valid."
    parts = [
        f"{n} {word}"
        for n, word in (
            (fine, "valid"),
            (doubtful, "suspect"),
            (unsure, "with a check that could not be made"),
        )
        if n
    ]
    tail = f"; figures come from the {len(trials) - out} that count" if out else ""
    parts += [f"{out} rejected"] if out else []
    return f"Of {counted(len(trials), 'trial')}, {join(parts)}{tail}."


def join(words: Sequence[str]) -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else ""


def spread_of(view: ExperimentView, server: str, figure: str) -> Spread | None:
    """Median and range of a figure over the trials of a server that count."""
    return spread(v for t in counting(view, server) if (v := value(t, figure)) is not None)


def value(trial: TrialView, figure: str) -> float | None:
    """A figure of one trial; None when it is absent."""
    if figure == STEADY_OVER_PUBLISHED:
        steady = trial.figures.get(HEADLINE)
        published = trial.figures.get("published_requests_per_s")
        return steady / published if steady is not None and published else None
    return trial.figures.get(figure)


def best(view: ExperimentView, figure: str) -> str | None:
    """The server that the comparison shows to be better than every other one in this figure, if any."""
    for server in (s.address for s in view.servers):
        rivals = {s.address for s in view.servers} - {server}
        beaten = {
            pair.b if pair.a == server else pair.a
            for pair in view.pairs
            if pair.figure == figure and server in (pair.a, pair.b)
            if (pair.verdict == "faster" and pair.a == server)
            or (pair.verdict == "slower" and pair.b == server)
        }
        if rivals and rivals <= beaten:
            return server
    return None


def better_first(pair: PairView) -> PairView:
    """The same comparison with the better server first (without a direction: the larger value first)."""
    if pair.ratio is None or pair.ratio <= 0:
        return pair
    known = FIGURE.get(pair.figure)
    lower_is_better = known is not None and known.higher_is_better is False
    if (pair.ratio > 1) if lower_is_better else (pair.ratio < 1):
        turned = {"faster": "slower", "slower": "faster"}
        low, high = pair.low, pair.high
        return replace(
            pair,
            a=pair.b,
            b=pair.a,
            ratio=1 / pair.ratio,
            low=1 / high if high else None,
            high=1 / low if low else None,
            verdict=turned.get(pair.verdict, pair.verdict),
        )
    return pair


def verdict_word(pair: PairView) -> str:
    """faster, slower … for throughput; lower, higher … for what has no speed."""
    if pair.figure == HEADLINE or pair.verdict not in ("faster", "slower") or pair.ratio is None:
        return str(pair.verdict)
    return "higher" if pair.ratio > 1 else "lower"


def published_requests(view: ExperimentView) -> int:
    """How many requests to a fresh process the published protocol sends."""
    marks = (published_mark(t.record.evidence) for t in view.trials)
    return next((mark.requests for mark in marks if mark is not None), 10_000)


def sections(view: ExperimentView) -> tuple[Section, ...]:
    """The table: servers as columns. A figure that no server has is left out."""
    made = []
    for title, note, figures in LAYOUT:
        rows = [row for figure in figures if (row := _row(view, figure)) is not None]
        if rows:
            made.append(Section(title, tuple(rows), note.format(n=f"{published_requests(view):,}")))
    shares = [row for figure in EVIDENCE_FIGURES if (row := _row(view, figure)) is not None]
    made.append(Section("Evidence", (_bound_row(view), *shares, _verdict_row(view))))
    return tuple(made)


def _row(view: ExperimentView, figure: str) -> Row | None:
    spreads = [spread_of(view, s.address, figure) for s in view.servers]
    if all(s is None for s in spreads):
        return None
    winner = best(view, figure)
    cells = [
        _cell(view, server.address, figure, s, server.address == winner)
        for server, s in zip(view.servers, spreads, strict=True)
    ]
    return Row(label_of(figure), unit_of(figure), tuple(cells), figure)


def _cell(view: ExperimentView, server: str, figure: str, found: Spread | None, is_best: bool) -> Cell:
    if found is None:
        return Cell("–" if counting(view, server) else "no figure")
    low, high = rounded(figure, found.low), rounded(figure, found.high)
    of = len(counting(view, server))
    missing = f", in {found.n} of {of}" if found.n < of else ""
    between = "one trial" if of == 1 else "all equal" if low == high else f"{low}–{high}"
    return Cell(rounded(figure, found.median), between + missing, is_best)


def _bound_row(view: ExperimentView) -> Row:
    cells = []
    for server in view.servers:
        bounds = [t.judgement.bound_by for t in counting(view, server.address)]
        tally = {b: bounds.count(b) for b in dict.fromkeys(bounds)}
        words = [b if len(tally) == 1 else f"{b} ({n} of {len(bounds)})" for b, n in tally.items()]
        cells.append(Cell(", ".join(words) or "no figure"))
    return Row("bound by", "", tuple(cells))


def _verdict_row(view: ExperimentView) -> Row:
    cells = []
    for server in view.servers:
        trials = view.of(server.address)
        statuses = [Status.INVALID if not t.counts else t.judgement.verdict for t in trials]
        worst = min(statuses, key=lambda s: SEVERITY[s], default=Status.UNKNOWN)
        fine = statuses.count(Status.VALID)
        others = [
            f"{statuses.count(s)} {'rejected' if s is Status.INVALID else s.value}"
            for s in (Status.SUSPECT, Status.UNKNOWN, Status.INVALID)
            if s in statuses
        ]
        cells.append(Cell(f"{fine} of {len(trials)} valid", ", ".join(others), status=worst))
    return Row("verdict", "", tuple(cells))


def median_trial(view: ExperimentView, server: str) -> TrialView | None:
    """The trial with its server's median throughput (the lower one of two): a real trial, not a mixture."""
    ranked = sorted(
        (t for t in counting(view, server) if HEADLINE in t.figures), key=lambda t: t.figures[HEADLINE]
    )
    return ranked[(len(ranked) - 1) // 2] if ranked else None
