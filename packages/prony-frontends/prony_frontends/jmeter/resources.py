""" "Retrieve All Embedded Resources": the resources of a page, and loops for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prony.plan.blocks import MOST_AT_ONCE, Loop, Parallel
from prony.plan.response import Resources
from prony.plan.step import Block, Entry, Step
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.patterns import Untranslatable, pattern

PARSER = "HTTPSampler.image_parser"
PROPERTIES = (PARSER, "HTTPSampler.concurrentDwn", "HTTPSampler.concurrentPool",
              "HTTPSampler.embedded_url_re", "HTTPSampler.embedded_url_exclude_re")  # fmt: skip
DEEPEST = 3
"""Limit on nested frames and style sheets; JMeter's httpsampler.max_frame_depth is 5."""
POOL = "6"
"""Default of JMeter's httpsampler.concurrent pool."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Resources that a sampler fetches."""

    lists: tuple[str, ...]
    """Names of the lists of resources, by level of nesting."""
    matching: str | None
    not_matching: str | None
    at_once: int = 1
    """Concurrent fetches; JMeter's pool."""

    def listed(self, level: int) -> Resources | None:
        """Resources that a step of this level lists."""
        if level >= len(self.lists):
            return None
        return Resources(into=self.lists[level], matching=self.matching, not_matching=self.not_matching)


def embedded(raw: Callable[[str], str], node: JmxNode, values: KnownValues) -> Embedded | None:
    """Resources this sampler fetches; None: the page only. `raw`: reads a property. Raises Refused."""
    if raw(PARSER).strip() != "true":
        return None
    matching, not_matching = (
        _pattern(values.constant(raw(f"HTTPSampler.{name}"), node), node, values)
        for name in ("embedded_url_re", "embedded_url_exclude_re")
    )
    at_once = 1
    if raw("HTTPSampler.concurrentDwn").strip() == "true":
        at_once = values.whole(raw("HTTPSampler.concurrentPool") or POOL, node, "HTTPSampler.concurrentPool")
    how = "sequentially over the thread's connection"
    if at_once > 1:
        how = (
            f"{at_once} at a time over as many connections of the thread (what one of them embeds itself one "
            "after the other)"
        )
    values.note(
        "embedded_resources",
        f"embedded resources are fetched {how}, from the page's own server only, {DEEPEST} levels deep; each "
        "counts as a request, and the page's row in the log covers all, as in JMeter",
    )
    name = values.unique("embedded")
    lists = tuple(f"{name}_{level}" if level > 1 else name for level in range(1, DEEPEST + 1))
    return Embedded(lists, matching, not_matching, min(at_once, MOST_AT_ONCE))


def _pattern(text: str, node: JmxNode, values: KnownValues) -> str | None:
    """A pattern for the whole URL."""
    if not text.strip():
        return None
    try:
        return f"^(?:{pattern(text).text})$"
    except Untranslatable as why:
        if not why.malformed:
            raise node.refused(
                f"the pattern '{text}' for embedded resources with {why}",
                "simplify it; use 'URLs must not match' for exclusions",
            ) from why
    values.note("pattern_ignored", f"'{text}' is not a regular expression and is ignored, as in JMeter", node)
    return None


def fetched(page: Step, one: Step, what: Embedded) -> list[Entry]:
    """The page, and `one` for each resource followed by its own resources."""
    inner: list[Entry] = []
    for level in reversed(range(len(what.lists))):
        name = what.lists[level]
        step = one.model_copy(update={"path": f"/${{{name}_it}}", "resources": what.listed(level + 1)})
        element = f"{name}_it"
        if level == 0 and what.at_once > 1:
            walked = Block(
                parallel=Parallel(at_once=what.at_once, each=name, element=element), steps=(step, *inner)
            )
        else:
            walked = Block(loop=Loop(each=name, element=element), steps=(step, *inner))
        inner = [walked]
    return [page.model_copy(update={"resources": what.listed(0)}), *inner]
