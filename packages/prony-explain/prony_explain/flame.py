"""Flame graphs as self-contained SVG: a box per function, its width the weight of all that it called. Pure.

Complete without its script: boxes have text and a tooltip. The script (`SCRIPT`) adds zoom and search; it is
in the SVG, or once in a page with several. The smallest boxes are left out, and at most `MOST_BOXES` remain;
the title says how many are missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import NamedTuple

from prony.evidence.profile import Sampling
from prony_explain.budget import UNSEEN
from prony_explain.rules import JAVA, Frame, Part, Place, Rules

MOST_BOXES = 1500
"""About 400 KB of SVG."""
MOST_DEPTH = 120
"""Deeper calls are cut, such as recursions."""
SMALLEST = 0.0005
"""Share of the total below which boxes are never drawn."""
WIDTH, ROW = 1200, 17
"""Pixels; rows hold 12 px text."""
LETTER = 7.3
"""Maximum width of a letter of that text."""

SCRIPT = files("prony_explain").joinpath("flame.js").read_text(encoding="utf-8")

FILL: Mapping[Part, str] = {
    Part.APPLICATION: "#f2b8b5", Part.FRAMEWORK: "#f6cd9a", Part.CONTAINER: "#f3e394",
    Part.RUNTIME: "#b9dfae", Part.LIBRARY: "#a9dcd2", Part.NETWORK: "#a9cdf0", Part.SCHEDULING: "#c9bdf0",
    Part.KERNEL: "#c3cad3", Part.UNATTRIBUTED: "#e2e2e0", Part.PROFILER: "#efefee",
}  # fmt: skip
"""Light enough for dark text in both colour schemes."""
TEXT = "#1c1f24"
MORE, LESS, EQUAL = (222, 92, 78), (72, 130, 200), (238, 238, 236)
"""Colours of a differential graph: needs more, needs less, no difference."""


@dataclass(slots=True)
class Node:
    """A function under a given chain of callers."""

    name: str
    weight: float = 0.0
    other: float = 0.0
    """Weight in the other profile of a differential graph."""
    place: Place | None = None
    below: dict[str, Node] = field(default_factory=dict)

    def child(self, name: str) -> Node:
        """The node of a called function, created if new."""
        return self.below.setdefault(name, Node(name))


class Box(NamedTuple):
    """A drawn node: `x` and `width` as shares of the total, depth 0 at the bottom."""

    node: Node
    depth: int
    x: float
    width: float


def readable(text: str) -> str:
    """A frame for display: Java with dots and without its compiler, threads without numbers."""
    frame = Frame.of(text)
    if frame.kind in JAVA:
        return frame.dotted
    if frame.kind == "k":
        return f"{frame.name} (kernel)"
    if frame.name.startswith("["):
        return re.sub(r"\d+", "*", re.sub(r"\s+tid=\d+", "", frame.name))
    return f"{frame.name} ({frame.place.rpartition('/')[2]})" if frame.place else frame.name


def tree(
    sampling: Sampling,
    rules: Rules | None = None,
    *,
    total: float | None = None,
    seen: float = 1.0,
    threads: bool = True,
) -> Node:
    """All slices as one tree, without the profiler's own work. `total`: the root's weight, by default the
    samples. `seen`: the share of it that was sampled; the rest has its own box. `threads`: whether the
    outermost boxes are threads; their names differ between servers.
    """
    root = Node("all")
    places = rules.places(sampling) if rules is not None else None
    nodes: list[Node] = []
    depths: list[int] = []
    for at, (parent, name) in enumerate(zip(sampling.parents, sampling.names, strict=True)):
        depth = depths[parent] + 1 if parent >= 0 else 1
        above = nodes[parent] if parent >= 0 else root
        frame = sampling.frames[name]
        left_out = depth > MOST_DEPTH or (not threads and parent < 0 and frame.startswith("["))
        node = above if left_out else above.child(readable(frame))
        if places is not None and node.place is None:
            node.place = places[at]
        nodes.append(node)
        depths.append(depth)
    own = [place.part is Part.PROFILER for place in places] if places is not None else [False] * len(nodes)
    kept = [(at, weight) for part in sampling.slices for at, weight in part.weights.items() if not own[at]]
    whole = sum(weight for _, weight in kept)
    scale = total * seen / whole if total is not None and whole else 1.0
    for at, weight in kept:
        nodes[at].weight += weight * scale
    if total is not None and seen < 1:
        unseen = root.child(UNSEEN.name)
        unseen.weight, unseen.place = total * (1 - seen), UNSEEN
    _add_up(root)
    return root


def compared(more: Node, less: Node) -> Node:
    """The first tree with the second's weights in `other`; for the second's own functions see `absent`."""
    for name, node in more.below.items():
        other = less.below.get(name)
        if other is not None:
            compared(node, other)
    more.other = less.weight
    return more


def absent(more: Node, less: Node) -> dict[str, float]:
    """Functions that only the second tree has under the same callers, with the weight of all that they call,
    descending: they have no box in a graph of the first.
    """
    weights: dict[str, float] = {}
    waiting = [(more, less)]
    while waiting:
        node, other = waiting.pop()
        for name, child in other.below.items():
            same = node.below.get(name)
            if same is not None:
                waiting.append((same, child))
            elif child.weight > 0:
                weights[name] = weights.get(name, 0.0) + child.weight
    return dict(sorted(weights.items(), key=lambda item: -item[1]))


def _add_up(root: Node) -> None:
    """Adds callees' weights to their callers; without recursion, as stacks are deep."""
    order = [root]
    for node in order:
        order.extend(node.below.values())
    for node in reversed(order):
        node.weight += sum(child.weight for child in node.below.values())


def boxes(root: Node) -> tuple[list[Box], float]:
    """Boxes to draw, and the smallest share drawn: at most MOST_BOXES, callees by name."""
    if root.weight <= 0:
        return [], SMALLEST
    widths = sorted((node.weight / root.weight for node in _every(root)), reverse=True)
    least = max(SMALLEST, widths[MOST_BOXES]) if len(widths) > MOST_BOXES else SMALLEST
    drawn: list[Box] = []
    waiting: list[tuple[Node, int, float]] = [(root, 0, 0.0)]
    while waiting:
        node, depth, x = waiting.pop()
        width = node.weight / root.weight
        drawn.append(Box(node, depth, x, width))
        for name in sorted(node.below):
            child = node.below[name]
            share = child.weight / root.weight
            if share > least or (share >= least and len(widths) <= MOST_BOXES):
                waiting.append((child, depth + 1, x))
            x += share
    return drawn, least


def _every(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.below.values())


def flame_svg(root: Node, *, title: str, unit: str, standalone: bool = False) -> str:
    """The graph, coloured by part. `unit`: of the weights, such as `µs per request`."""

    def tooltip(node: Node) -> str:
        part = f", {node.place.part.value}" if node.place is not None else ""
        return f"{node.name}: {_amount(node.weight)} {unit}, {node.weight / root.weight:.2%}{part}"

    def fill(node: Node) -> str:
        return FILL[node.place.part] if node.place is not None else FILL[Part.UNATTRIBUTED]

    return _svg(root, title, tooltip, fill, standalone)


def difference_svg(root: Node, *, title: str, unit: str, standalone: bool = False) -> str:
    """The first profile's graph: red where it exceeds the second, blue where it is below."""
    most = (
        max((abs(node.weight - node.other) for node in _every(root) if node is not root), default=0.0) or 1.0
    )

    def tooltip(node: Node) -> str:
        apart = node.weight - node.other
        sign = "+" if apart >= 0 else "−"
        both = f"{_amount(node.weight)} against {_amount(node.other)} {unit}"
        return f"{node.name}: {both} ({sign}{_amount(abs(apart))})"

    def fill(node: Node) -> str:
        apart = (node.weight - node.other) / most
        towards, strength = (MORE, apart) if apart >= 0 else (LESS, -apart)
        shade = min(1.0, strength) ** 0.5 * 0.75
        mixed = (round(e + (t - e) * shade) for e, t in zip(EQUAL, towards, strict=True))
        return "#" + "".join(f"{level:02x}" for level in mixed)

    return _svg(root, title, tooltip, fill, standalone)


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _svg(
    root: Node, title: str, tooltip: Callable[[Node], str], fill: Callable[[Node], str], standalone: bool
) -> str:
    drawn, least = boxes(root)
    deepest = max((box.depth for box in drawn), default=0)
    height = (deepest + 1) * ROW + 4
    left_out = sum(node.weight > 0 for node in _every(root)) - len(drawn)
    words = title if not left_out else f"{title}. {left_out:,} boxes of at most {least:.2%} are not drawn."
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flame" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{escape(words)}" font-family="ui-monospace, Menlo, Consolas, monospace" '
        f'font-size="12">',
        f"<title>{escape(words)}</title>",
    ]
    for box in drawn:
        x, width = box.x * WIDTH, box.width * WIDTH
        y = height - (box.depth + 1) * ROW - 2
        shown = fit(box.node.name, width)
        text = (
            f'<text x="{x + 3:.1f}" y="{y + 12.5:.1f}" fill="{TEXT}">{escape(shown)}</text>' if shown else ""
        )
        parts.append(
            f'<g data-x="{box.x:.6f}" data-w="{box.width:.6f}"><title>{escape(tooltip(box.node))}</title>'
            f'<rect x="{x:.1f}" y="{y}" width="{max(0.3, width - 0.4):.1f}" height="{ROW - 1}" rx="1" '
            f'fill="{fill(box.node)}"/>{text}</g>'
        )
    if standalone:
        parts.append(f"<script><![CDATA[{SCRIPT}]]></script>")
    parts.append("</svg>")
    return "".join(parts)


def fit(name: str, width: float) -> str:
    """Fits a name: whole, the last segments in Java, or its beginning; empty below three letters."""
    letters = int((width - 6) / LETTER)
    if letters < 3:
        return ""
    if len(name) <= letters:
        return name
    short = ".".join(name.split(".")[-2:]) if "." in name and " " not in name else name
    return short if len(short) <= letters else short[: letters - 1] + "…"


def legend(parts: Sequence[Part]) -> list[tuple[str, str]]:
    """The colour of each part: (colour, name)."""
    return [(FILL[part], part.value) for part in parts]
