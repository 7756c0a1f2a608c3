"""The tables of the second pass: latency at a given rate, over servers. Values in, words and cells out.

Must not know how it is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prony.compare import BAND
from prony.report.latency_pass import LatencyPass
from prony.report.model import TrialView, spread
from prony.report.pairs import figure_pairs
from prony.report.wording import ABSENT, significant

COLUMNS = (("p50_ms", "p50, ms"), ("p99_ms", "p99, ms"), ("p999_ms", "p99.9, ms"))
COMPARED = ("p50_ms", "p99_ms")


def latency_pass(
    title: str,
    experiment_id: str,
    servers: Sequence[str],
    trials: Sequence[TrialView],
    offered_per_s: Mapping[str, float],
    band: float = BAND,
) -> LatencyPass:
    """Median and range over the trials that count; latencies from the intended send."""
    rows = []
    for server in servers:
        mine = [t for t in trials if t.record.server == server and t.record.kind == "trial"]
        counting = [t for t in mine if t.counts]
        cells = [_cell([t.figures[f] for t in counting if f in t.figures]) for f, _ in COLUMNS]
        rows.append(
            (server, significant(offered_per_s[server], 3), *cells, f"{len(counting)} of {len(mine)}")
        )
    sentences: list[str] = []
    for figure in COMPARED:
        if any(t.counts and figure in t.figures for t in trials):
            sentences += [pair.sentence for pair in figure_pairs(trials, figure, servers, band=band)]
    head = ("server", "offered/s", *(label for _, label in COLUMNS), "trials that count")
    return LatencyPass(title, experiment_id, head, tuple(rows), tuple(sentences))


def _cell(values: Sequence[float]) -> str:
    found = spread(values)
    if found is None:
        return ABSENT
    middle = significant(found.median, 3)
    return middle if found.n == 1 else f"{middle} ({significant(found.low, 3)}–{significant(found.high, 3)})"
