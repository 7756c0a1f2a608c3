"""All pairs of one figure: which trials count, the verdict of each pair and its interval. Must not know
evidence.

Invalid trials are excluded and named with their cause. Never best of N, never an average of percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from prony.compare.exclusion import Side, undecided_because
from prony.compare.family import holm_levels, more_trials
from prony.compare.ratio import RESAMPLES, RatioResult, Verdict, ratio, repeated_ratio, verdict
from prony.compare.sentence import sentence
from prony.compare.sequential import Looks
from prony.compare.summary import Summary, summary
from prony.judge.figures import FIGURE

BAND = 0.02
"""The practical band: ratios closer to 1 than this make no difference in practice."""


class Sample(NamedTuple):
    """One figure of one trial. `machine` is the fingerprint's key; empty means: all on one machine."""

    server: str
    block: int
    value: float | None
    valid: bool = True
    why: str = ""
    """Why it is not valid."""
    machine: str = ""
    disturbed: bool = False
    """Excluded for a cause outside the trial (another process, the host), which says nothing about the
    server.
    """
    suspect: bool = False
    """The trial counts; the pair is also given without it where that makes a difference."""


@dataclass(frozen=True, slots=True)
class ServerValues:
    """One server's trials: those that count, and why the others were excluded."""

    server: str
    values: tuple[float, ...]
    blocks: tuple[int, ...]
    machines: frozenset[str]
    excluded: tuple[str, ...]
    excluded_blocks: tuple[int, ...]
    """Blocks of the trials excluded for what happened in them."""
    suspects: tuple[bool, ...]
    """For each of `values`, whether its trial is suspect."""
    summary: Summary | None

    @property
    def side(self) -> Side:
        """The input of the exclusion rule."""
        return Side(self.server, self.values, self.blocks, self.excluded_blocks)

    def without_suspects(self) -> tuple[list[float], list[int]]:
        """Values and blocks of the trials that are not suspect."""
        kept = [at for at, suspect in enumerate(self.suspects) if not suspect]
        return [self.values[at] for at in kept], [self.blocks[at] for at in kept]


@dataclass(frozen=True, slots=True)
class Pair:
    """a against b. `low` and `high` are None without an interval; so is `ratio` when a side has no valid
    trial.
    """

    a: str
    b: str
    figure: str
    ratio: float | None
    low: float | None
    high: float | None
    confidence: float | None
    """Of this pair's own interval, from Holm's level (with repeated looks its equal share): at least the
    family's.
    """
    verdict: Verdict
    sentence: str
    least_more_trials: int | None = None
    """Further trials per server at the lower end of the spread's interval; `more_trials` at the upper end."""
    more_trials: int | None = None
    method: str = ""
    n: int = 0
    p_value: float | None = None
    bootstrap_low: float | None = None
    bootstrap_high: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure over all servers."""

    figure: str
    band: float
    confidence: float
    family: int
    """Number of pairs tested together."""
    servers: tuple[ServerValues, ...]
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...]
    """Trials that were excluded, and why."""
    looks: Looks | None
    """Set when trials were added until the pairs were settled."""


def compare(
    trials: Iterable[Sample],
    figure: str = "requests_per_s",
    *,
    band: float = BAND,
    confidence: float = 0.95,
    higher_is_better: bool | None = None,
    servers: Sequence[str] = (),
    looks: Looks | None = None,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Every pair of servers, with Holm over those that could be tested.

    With `looks` (trials are added until the pairs are clear) every interval covers at all looks at once and
    each pair of servers gets an equal share of the error, so that no look and no pair was free. `resamples`
    is of the bootstrap beside the t interval; 0 leaves it out.

    `servers` fixes the order (else: as they first appear); `higher_is_better` overrides the direction that
    FIGURES knows. Raises ValueError for a band below 0 or a confidence outside (0, 1).
    """
    if band < 0 or not 0 < confidence < 1:
        raise ValueError("band must be at least 0 and confidence between 0 and 1")
    direction = higher_is_better
    if direction is None:
        direction = FIGURE[figure].higher_is_better if figure in FIGURE else True
    gathered = _gather(list(trials), servers)
    notes = tuple(f"{s.server}: {cause}" for s in gathered for cause in s.excluded)
    if looks is not None:
        return Comparison(
            figure,
            band,
            confidence,
            math.comb(len(gathered), 2),
            tuple(gathered),
            _repeated(gathered, figure, band, confidence, direction, looks),
            notes,
            looks,
        )
    tested: dict[tuple[str, str], RatioResult] = {}
    first_look: dict[tuple[str, str], RatioResult] = {}
    for a, b in combinations(gathered, 2):
        if a.values and b.values and not _confounded(a, b):
            found = ratio(a.values, b.values, a.blocks, b.blocks, confidence=confidence, resamples=0)
            (first_look if found.p_value is None else tested)[a.server, b.server] = found
    chances = [found.p_value for found in tested.values() if found.p_value is not None]
    levels = dict(zip(tested, holm_levels(chances, 1 - confidence), strict=True))
    pairs = []
    for a, b in combinations(gathered, 2):
        key = (a.server, b.server)
        if key in levels:
            level = levels[key]
            found = ratio(a.values, b.values, a.blocks, b.blocks, confidence=1 - level, resamples=resamples)
            pairs.append(_said(a, b, figure, found, level, band, confidence, direction, len(levels)))
        else:
            pairs.append(_untested(a, b, figure, first_look.get(key), band, confidence))
    return Comparison(figure, band, confidence, len(levels), tuple(gathered), tuple(pairs), notes, None)


def _repeated(
    gathered: Sequence[ServerValues],
    figure: str,
    band: float,
    confidence: float,
    direction: bool | None,
    looks: Looks,
) -> tuple[Pair, ...]:
    """Every pair at an equal share of the error, over all looks."""
    family = math.comb(len(gathered), 2)
    pairs = []
    for a, b in combinations(gathered, 2):
        if not (a.values and b.values) or _confounded(a, b):
            pairs.append(_untested(a, b, figure, None, band, confidence))
            continue
        level = (1 - confidence) / family
        found = repeated_ratio(a.values, b.values, a.blocks, b.blocks, looks, confidence=1 - level)
        if found.low is None:
            pairs.append(_untested(a, b, figure, found, band, confidence))
        else:
            pairs.append(_said(a, b, figure, found, level, band, confidence, direction, family))
    return tuple(pairs)


def _gather(trials: list[Sample], servers: Sequence[str]) -> list[ServerValues]:
    order = list(dict.fromkeys([*servers, *(trial.server for trial in trials)]))
    gathered = []
    for server in order:
        mine = [trial for trial in trials if trial.server == server]
        causes = [(trial, _cause(trial)) for trial in mine]
        kept = [(trial.value, trial) for trial, cause in causes if cause is None and trial.value is not None]
        values = tuple(float(value) for value, _ in kept)
        gathered.append(
            ServerValues(
                server=server,
                values=values,
                blocks=tuple(trial.block for _, trial in kept),
                machines=frozenset(trial.machine for _, trial in kept),
                excluded=tuple(
                    f"trial of block {trial.block} excluded: {cause}"
                    for trial, cause in causes
                    if cause is not None
                ),
                excluded_blocks=tuple(
                    trial.block for trial, cause in causes if cause is not None and not trial.disturbed
                ),
                suspects=tuple(trial.suspect for _, trial in kept),
                summary=summary(values),
            )
        )
    return gathered


def _cause(trial: Sample) -> str | None:
    """Why a trial is excluded; None when it counts."""
    if not trial.valid:
        return trial.why or "judged invalid"
    if trial.value is None or not math.isfinite(trial.value):
        return "the figure is missing"
    if trial.value <= 0:
        return f"the figure is {trial.value:g}: no ratio"
    return None


def _confounded(a: ServerValues, b: ServerValues) -> bool:
    """Whether the machine differs as well, so that the ratio cannot be attributed to the servers."""
    return a.machines != b.machines or len(a.machines) > 1


def _said(
    a: ServerValues,
    b: ServerValues,
    figure: str,
    found: RatioResult,
    level: float,
    band: float,
    confidence: float,
    direction: bool | None,
    family: int,
) -> Pair:
    decided = verdict(found.low, found.high, band, direction)
    excluded = ""
    if decided is not Verdict.INCONCLUSIVE:
        excluded = undecided_because(
            a.side,
            b.side,
            lambda *sides: _again(*sides, like=found),
            lambda other: verdict(other.low, other.high, band, direction) is decided,
        )
        decided = Verdict.INCONCLUSIVE if excluded else decided
    more = more_trials(found, band, level) if decided is Verdict.INCONCLUSIVE and not excluded else None
    return Pair(
        a=a.server,
        b=b.server,
        figure=figure,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        confidence=found.confidence,
        verdict=decided,
        sentence=sentence(
            a.server,
            b.server,
            figure,
            found,
            decided,
            band=band,
            confidence=confidence,
            family=family,
            more=more,
            excluded=excluded,
            without_suspects=_without_suspects(a, b, found, band, direction),
        ),
        least_more_trials=None if more is None else more.least,
        more_trials=None if more is None else more.most,
        method=found.method,
        n=found.n,
        p_value=found.p_value,
        bootstrap_low=found.bootstrap_low,
        bootstrap_high=found.bootstrap_high,
    )


def _again(
    values_a: Sequence[float],
    values_b: Sequence[float],
    blocks_a: Sequence[int],
    blocks_b: Sequence[int],
    *,
    like: RatioResult,
) -> RatioResult:
    """The same comparison of other values: same confidence, same looks."""
    if like.looks is None:
        return ratio(values_a, values_b, blocks_a, blocks_b, confidence=like.confidence, resamples=0)
    return repeated_ratio(values_a, values_b, blocks_a, blocks_b, like.looks, confidence=like.confidence)


def _without_suspects(
    a: ServerValues, b: ServerValues, found: RatioResult, band: float, direction: bool | None
) -> RatioResult | None:
    """The result without suspect trials; None when there are none, or it is the same."""
    if not any((*a.suspects, *b.suspects)):
        return None
    (values_a, blocks_a), (values_b, blocks_b) = a.without_suspects(), b.without_suspects()
    if not values_a or not values_b:
        return None
    other = _again(values_a, values_b, blocks_a, blocks_b, like=found)
    same = verdict(other.low, other.high, band, direction) is verdict(found.low, found.high, band, direction)
    near = abs(math.log(other.ratio / found.ratio)) <= math.log1p(band)
    return None if same and near else other


def _untested(
    a: ServerValues, b: ServerValues, figure: str, found: RatioResult | None, band: float, confidence: float
) -> Pair:
    """A pair without a test: no valid trial, too few of them, or another machine."""
    seen: float | None = None
    n = min(len(a.values), len(b.values))
    if found is not None:
        seen = found.ratio
        text = sentence(
            a.server,
            b.server,
            figure,
            found,
            Verdict.INCONCLUSIVE,
            band=band,
            confidence=confidence,
            family=1,
            more=None,
        )
    elif n == 0:
        empty = " and ".join(side.server for side in (a, b) if not side.values)
        text = f"{a.server} and {b.server}: no comparison, no valid trial of {empty}"
    else:
        seen = ratio(a.values, b.values, resamples=0).ratio
        text = (
            f"{a.server} and {b.server} were measured on different machines: ratio {seen:.2f}x, "
            "confounded with the machine, no interval"
        )
    return Pair(a.server, b.server, figure, seen, None, None, None, Verdict.INCONCLUSIVE, text, n=n)
