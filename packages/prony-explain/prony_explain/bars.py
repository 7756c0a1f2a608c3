"""SVG: each server's budget as a stacked bar, and the runtime's events over the window. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from prony.evidence.profile import TimelineEvent
from prony_explain.budget import Budget
from prony_explain.flame import FILL, TEXT, fit

WIDTH, BAR, GAP = 760, 34, 26
LANE = 26
EVENTS: Mapping[str, tuple[str, str]] = {
    "collection": ("collections", "#b3261e"),
    "safepoint": ("safepoints", "#8a6a00"),
    "compilation": ("compilations", "#1d6fb8"),
    "throttled": ("throttled", "#9c4594"),
    "run-queue": ("waiting for a CPU", "#08805f"),
    "disk": ("reads from disk", "#6b6b6b"),
    "lock": ("waits for a lock", "#b35c00"),
}
"""Kind of event -> name and colour of its lane."""
MOST_MARKS = 600
"""Per lane; more marks are merged into this many columns."""


def budget_bars(budgets: Sequence[tuple[str, Budget]], *, title: str) -> str:
    """A bar per server on a common scale, in µs of CPU time per request."""
    most = max((budget.cpu_us for _, budget in budgets), default=0.0) or 1.0
    height = len(budgets) * (BAR + GAP) + 4
    svg = [_head(height, title)]
    for row, (server, budget) in enumerate(budgets):
        y = row * (BAR + GAP)
        svg.append(
            f'<text x="0" y="{y + 14}" fill="currentColor">{escape(server)}: {budget.cpu_us:.1f} µs</text>'
        )
        x = 0.0
        for part in budget.parts:
            width = part.us / most * WIDTH
            words = f"{part.part.value}: {part.us:.1f} µs, {part.share:.1%}"
            label = fit(f"{part.part.value} {part.us:.1f}", width)
            svg.append(
                f'<g><title>{escape(words)}</title><rect x="{x:.1f}" y="{y + 20}" '
                f'width="{max(0.0, width - 0.6):.1f}" height="{BAR}" fill="{FILL[part.part]}"/>'
            )
            if label:
                svg.append(f'<text x="{x + 4:.1f}" y="{y + 41}" fill="{TEXT}">{escape(label)}</text>')
            svg.append("</g>")
            x += width
    return "".join([*svg, "</svg>"])


def timeline(
    events: Sequence[TimelineEvent],
    until_s: float,
    *,
    silences_s: Sequence[tuple[float, float]] = (),
    slow_s: Sequence[tuple[float, float]] = (),
    title: str,
) -> str:
    """A lane per kind of event, in seconds from the start of the window. `silences_s`: the longest spans
    without a completed request; `slow_s`: the slowest requests; both as (start, duration).
    """
    kinds = [kind for kind in EVENTS if any(event.kind == kind for event in events)]
    lanes = [(EVENTS[kind], [(e.start_s, e.duration_s) for e in events if e.kind == kind]) for kind in kinds]
    if silences_s:
        lanes.append((("nothing completed", TEXT), list(silences_s)))
    if slow_s:
        lanes.append((("slowest 1 %", TEXT), list(slow_s)))
    until_s = max(until_s, *(at for _, marks in lanes for at, _ in marks), 1e-9) if lanes else until_s
    height = len(lanes) * LANE + 26
    left = 150
    svg = [_head(height, title)]
    for row, ((name, colour), marks) in enumerate(lanes):
        y = row * LANE
        ink = "currentColor" if colour == TEXT else colour
        svg.append(f'<text x="0" y="{y + 16}" fill="currentColor">{escape(name)} {len(marks):,}</text>')
        svg.append(
            f'<line x1="{left}" x2="{WIDTH}" y1="{y + 21}" y2="{y + 21}" stroke="currentColor" '
            f'opacity="0.2"/>'
        )
        for start, length in _merged(_apart(marks), until_s):
            x, width = left + max(0.0, start) / until_s * (WIDTH - left), length / until_s * (WIDTH - left)
            svg.append(
                f'<rect x="{x:.1f}" y="{y + 5}" width="{max(1.2, width):.1f}" height="15" fill="{ink}">'
                f"<title>{escape(name)}: {start:.3f} s, {length * 1000:.2f} ms</title></rect>"
            )
    for k in range(5):
        x, at = left + k / 4 * (WIDTH - left), until_s * k / 4
        anchor = "end" if k == 4 else "middle" if k else "start"
        svg.append(
            f'<text x="{x:.1f}" y="{height - 6}" text-anchor="{anchor}" fill="currentColor" opacity="0.7">'
            f"{at:.3g} s</text>"
        )
    return "".join([*svg, "</svg>"])


def _apart(marks: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Merges overlapping marks."""
    spans: list[tuple[float, float]] = []
    for start, length in sorted(marks):
        if spans and start <= sum(spans[-1]):
            first = spans[-1][0]
            spans[-1] = (first, max(sum(spans[-1]), start + length) - first)
        else:
            spans.append((start, length))
    return spans


def _merged(marks: Sequence[tuple[float, float]], until_s: float) -> list[tuple[float, float]]:
    """Merges marks of the same column."""
    if len(marks) <= MOST_MARKS:
        return list(marks)
    column = until_s / MOST_MARKS
    columns: dict[int, tuple[float, float]] = {}
    for start, length in marks:
        at = int(start / column)
        known = columns.get(at)
        columns[at] = (start, length) if known is None else (known[0], known[1] + length)
    return list(columns.values())


def _head(height: int, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12">'
        f"<title>{escape(title)}</title>"
    )
