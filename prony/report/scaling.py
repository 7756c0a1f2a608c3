"""What a sweep or a search for a capacity came to: sentences and rows, on a terminal, as JSON, or as a page.

Must not measure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prony.compare.capacity import End
from prony.compare.scaling import Estimate, Scaling
from prony.experiment.capacity import Capacity, Tried
from prony.experiment.points import PointTrial
from prony.experiment.sweep import Sweep
from prony.report.delivery import deliver
from prony.report.model import spread
from prony.report.wording import ABSENT, number, significant

NOTHING = 1e-9
"""A coefficient below this is printed as 0: no number of users would feel it."""
COLUMNS = ("requests_per_s", "p50_ms", "p99_ms", "server_cpu_share")


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table: cells as text, verdict, and what there is to say."""

    cells: tuple[str, ...]
    verdict: str
    why: str


@dataclass(frozen=True, slots=True)
class Shown:
    """All that any output shows."""

    title: str
    sentences: tuple[str, ...]
    head: tuple[str, ...]
    lines: tuple[Line, ...]


def show_sweep(sweep: Sweep, identifier: str, *, as_json: bool, report: Path | None) -> None:
    """Print the sweep, and write its page where asked for."""
    deliver(
        as_json=as_json,
        as_object=lambda: {"id": identifier, **sweep_json(sweep)},
        table=partial(_table, sweep_shown(sweep), identifier),
        page=partial(page_of, sweep, identifier),
        report=report,
    )


def show_capacity(found: Capacity, identifier: str, *, as_json: bool, report: Path | None) -> None:
    """Print what the search came to, and write its page where asked for."""
    deliver(
        as_json=as_json,
        as_object=lambda: {"id": identifier, **capacity_json(found)},
        table=partial(_table, capacity_shown(found), identifier),
        page=partial(page_of, found, identifier),
        report=report,
    )


def page_of(made: Sweep | Capacity, identifier: str) -> str:
    """Its self-contained page, as text."""
    from prony.report.html.scaling import capacity_page, sweep_page

    if isinstance(made, Sweep):
        return sweep_page(made, _named(sweep_shown(made), identifier))
    return capacity_page(made, _named(capacity_shown(made), identifier))


def _named(shown: Shown, identifier: str) -> Shown:
    return replace(shown, sentences=(*shown.sentences, f"Stored as {identifier}."))


def _table(shown: Shown, identifier: str, console: Console) -> None:
    console.print()
    console.print(Text(shown.title, style="bold"))
    for sentence in shown.sentences:
        console.print(Text(sentence))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, name in enumerate(shown.head[:-1]):
        table.add_column(name, justify="left" if place == len(shown.head) - 2 else "right")
    for line in shown.lines:
        table.add_row(*(Text(cell) for cell in (*line.cells, line.verdict)))
    console.print(table)
    whys: dict[str, list[str]] = {}
    for line in shown.lines:
        if line.why:
            whys.setdefault(line.why, []).append(line.cells[0])
    for why, where in whys.items():
        console.print(Text(f"{', '.join(where)}: {why}", style="dim"))
    console.print(Text(f"stored as {identifier}: prony results show {identifier}", style="dim"))


def sweep_shown(sweep: Sweep) -> Shown:
    """The sweep in words and cells."""
    head = ("users", "requests/s", "p50 ms", "p99 ms", "server CPU", "by the law", "verdict", "")
    lines = tuple(_point(sweep, users) for users in sweep.users)
    return Shown(f"{sweep.target}: how it scales", tuple(_law_words(sweep)), head, lines)


def _point(sweep: Sweep, users: int) -> Line:
    trials = sweep.of(users)
    counting = [t for t in trials if t.counts]
    cells = [_over(counting, figure) for figure in COLUMNS]
    fitted = ABSENT if sweep.law is None else significant(sweep.law.per_s(users), 4)
    verdicts = list(dict.fromkeys("rejected" if not t.counts else t.judgement.verdict.value for t in trials))
    why = next((t.why for t in trials if not t.counts), next((t.why for t in trials if t.why), ""))
    return Line((f"{users:,}", *cells, fitted), ", ".join(verdicts), why)


def _over(trials: Sequence[PointTrial], figure: str) -> str:
    """Median over the trials, with the range where there are several."""
    found = spread(t.figures[figure] for t in trials if figure in t.figures)
    if found is None:
        return ABSENT
    middle = significant(found.median, 4)
    return middle if found.n == 1 else f"{middle} ({significant(found.low, 4)}–{significant(found.high, 4)})"


def _law_words(sweep: Sweep) -> list[str]:
    law = sweep.law
    if law is None:
        return [
            "Fewer than four numbers of users have a trial that counts: no law is fitted; "
            "measure more numbers, or mend what the findings say."
        ]
    spot = (
        f"No sweet spot up to {number(law.most_users)} users: throughput still rises there; measure more."
        if law.rising
        else f"Sweet spot: {_users(law.sweet_spot)} reach 95 % of the highest throughput that was fitted "
        f"up to {number(law.most_users)} users; more users only wait longer."
    )
    words = [
        spot,
        f"Universal Scalability Law: one user {_interval(law.rate_1)} requests/s, contention α "
        f"{_interval(law.alpha)}, coherency β {_interval(law.beta)}; typical miss {law.miss * 100:.1f} %.",
        _peak_words(law),
    ]
    if law.poor:
        words.append(
            "The law misses these points by more than 10 %: something else bounds this server (a pool, a "
            "delay, the client). Read the table, not the coefficients."
        )
    if law.alpha.low is None:
        words.append("Fewer than five numbers of users: no intervals.")
    return words


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
        return f"No peak: up to {number(law.most_users)} users more users never cost throughput by this law."
    said = f"Highest throughput at N* = {_users(law.peak)}"
    if law.peak_seen:
        return f"{said}: more users cost throughput."
    return f"{said}: beyond the {number(law.most_users)} that were measured, so this is a guess."


def capacity_shown(found: Capacity) -> Shown:
    """The search in words and cells."""
    head = ("offered/s", "sent/s", "p50 ms", "p99 ms", "of allowed", "outcome", "verdict", "")
    lines = tuple(_tried(one) for one in sorted(found.tried, key=lambda t: t.rate_per_s))
    wanted = " and ".join(str(o) for o in found.objectives)
    return Shown(f"{found.target}: capacity with {wanted}", (_capacity_words(found),), head, lines)


def _tried(one: Tried) -> Line:
    figures = one.trial.figures if one.trial.counts else {}
    share = ABSENT if one.pressure is None else f"{one.pressure * 100:.0f} %"
    cells = (
        significant(one.rate_per_s, 4),
        *(significant(figures.get(f), 4) for f in ("requests_per_s", "p50_ms", "p99_ms")),
        share,
        one.outcome.value,
    )
    verdict = "rejected" if not one.trial.counts else one.trial.judgement.verdict.value
    return Line(cells, verdict, one.trial.why)


def _capacity_words(capacity: Capacity) -> str:
    found = capacity.found
    held, failed, client = (
        None if rate is None else f"{significant(rate, 4)} requests/s"
        for rate in (found.held_per_s, found.failed_per_s, found.client_per_s)
    )
    trials = f"{found.trials} trials"
    if found.end is End.FOUND:
        return f"It carries {held} and not {failed} ({trials})."
    if found.end is End.CLIENT and held is not None:
        return (
            f"It carries at least {held}; {client} could not be offered by this client, so nothing is said "
            f"about more ({trials})."
        )
    if found.end is End.CLIENT:
        return (
            f"Not even {client} could be offered by this client: nothing is known of the server ({trials})."
        )
    if found.end is End.NEVER:
        return (
            f"Not even {failed} meets it; fewer requests than that do not make up the percentile ({trials})."
        )
    if found.end is End.HIGHEST:
        return f"It carries at least {held}, the highest rate that was to be tried ({trials})."
    known = f"it carries {held}" if held is not None else "no rate held so far"
    known += f" and not {failed}" if failed is not None else ""
    if found.end is None:
        return f"The search was interrupted after {trials}: {known}."
    if found.end is End.TRIALS:
        return f"The search ended after {trials}: {known}; allow more with --max-trials."
    return f"Trials were judged invalid again and again ({trials}): {known}; the findings below say why."


def sweep_json(sweep: Sweep) -> dict[str, Any]:
    """The JSON of `prony sweep` (docs/commands.md)."""
    law = sweep.law
    return {
        "schema": 1,
        "kind": "sweep",
        "target": sweep.target,
        "seed": sweep.seed,
        "points": [
            {
                "users": users,
                "trials": [_trial_json(t) for t in sweep.of(users)],
                "fitted_per_s": None if law is None else law.per_s(users),
            }
            for users in sweep.users
        ],
        "law": None
        if law is None
        else {
            "rising": law.rising,
            "rate_1_per_s": _estimate_json(law.rate_1),
            "alpha": _estimate_json(law.alpha),
            "beta": _estimate_json(law.beta),
            "peak_users": _estimate_json(law.peak),
            "peak_seen": law.peak_seen,
            "sweet_spot_users": _estimate_json(law.sweet_spot),
            "miss": law.miss,
            "poor": law.poor,
            "confidence": law.confidence,
        },
        "sentences": _law_words(sweep),
    }


def capacity_json(capacity: Capacity) -> dict[str, Any]:
    """The JSON of `prony capacity` (docs/commands.md)."""
    found = capacity.found
    return {
        "schema": 1,
        "kind": "capacity",
        "target": capacity.target,
        "objectives": [
            {"name": o.name, "figure": o.figure, "below_ms": o.below_ms} for o in capacity.objectives
        ],
        "held_per_s": found.held_per_s,
        "failed_per_s": found.failed_per_s,
        "client_per_s": found.client_per_s,
        "end": None if found.end is None else found.end.value,
        "sentence": _capacity_words(capacity),
        "tried": [
            {
                "rate_per_s": one.rate_per_s,
                "outcome": one.outcome.value,
                "pressure": one.pressure,
                **_trial_json(one.trial),
            }
            for one in capacity.tried
        ],
    }


def _trial_json(trial: PointTrial) -> dict[str, Any]:
    return {
        "id": trial.trial_id,
        "verdict": trial.judgement.verdict.value,
        "bound_by": trial.judgement.bound_by,
        "failure": trial.failure,
        "why": trial.why,
        "figures": {name: value for name, value in trial.figures.items() if math.isfinite(value)}
        if trial.counts
        else {},
    }


def _estimate_json(estimate: Estimate) -> dict[str, float | None]:
    """Infinity (no peak) has no JSON: it is null, as is an interval that is not known."""

    def finite(value: float | None) -> float | None:
        return value if value is not None and math.isfinite(value) else None

    return {
        "value": finite(estimate.value),
        "ci_low": finite(estimate.low),
        "ci_high": finite(estimate.high),
    }
