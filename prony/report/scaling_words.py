"""A sweep or a search for a capacity in words and cells: what a terminal and a page both show.

Must not know where it is shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from prony.compare.capacity import End
from prony.compare.scaling import Estimate, Scaling
from prony.experiment.capacity import Capacity, Tried
from prony.experiment.points import PointTrial
from prony.experiment.sweep import Sweep
from prony.report.model import spread
from prony.report.wording import ABSENT, number, significant

NOTHING = 1e-9
"""A coefficient below this is printed as 0: no number of users would feel it."""
VERDICTS = ("valid", "suspect", "unknown", "rejected")
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


def sweep_shown(sweep: Sweep) -> Shown:
    """The sweep in words and cells."""
    head = ("users", "requests/s", "p50 ms", "p99 ms", "server CPU", "by the law", "verdict", "")
    lines = tuple(_point(sweep, users) for users in sweep.users)
    words = (verdict_words([t for users in sweep.users for t in sweep.of(users)]), *law_words(sweep))
    return Shown(f"{sweep.target}: how it scales", words, head, lines)


def verdict_words(trials: Sequence[PointTrial]) -> str:
    """How far the trials may be believed; it stands before everything that is concluded from them."""
    verdicts = Counter("rejected" if not t.counts else t.judgement.verdict.value for t in trials)
    if verdicts.keys() <= {"valid"}:
        return f"All {number(len(trials))} trials are valid."
    listed = ", ".join(f"{number(verdicts[word])} {word}" for word in VERDICTS if verdicts[word])
    return f"Of {number(len(trials))} trials: {listed}; the findings are in the table."


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


def law_words(sweep: Sweep) -> list[str]:
    """What the fitted law says, sentence by sentence."""
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
    words = (verdict_words([one.trial for one in found.tried]), capacity_words(found))
    return Shown(f"{found.target}: capacity with {wanted}", words, head, lines)


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


def capacity_words(capacity: Capacity) -> str:
    """What the search came to, in one sentence."""
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
