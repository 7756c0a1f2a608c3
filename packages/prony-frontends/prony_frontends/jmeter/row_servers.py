"""Servers named by the rows of a data set: a sampler becomes one request for each server."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice

from prony.plan.blocks import Condition
from prony.plan.step import Block, Entry
from prony_frontends.jmeter import rows
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.scope import TreeScope

NAMED_BY = ("HTTPSampler.protocol", "HTTPSampler.domain", "HTTPSampler.port")
REFERENCE = re.compile(r"\$\{([^{}$]+)\}")
MOST_SERVERS = 20


def by_server(
    node: JmxNode, scope: TreeScope, values: KnownValues, made: Callable[[], list[Entry]]
) -> list[Entry]:
    """The sampler's entries, with a branch for each combination of the values that name its server."""
    columns = _columns(node, scope, values)
    feeders = {column.partition(".")[0] for column in columns.values()}
    if not columns or len(feeders) > 1:  # others are refused where they are read
        return made()
    feeder = values.feeders[feeders.pop()]
    read = [rows.column(feeder, column.partition(".")[2]) for column in columns.values()]
    servers = list(islice(dict.fromkeys(zip(*read, strict=True)), MOST_SERVERS + 1))
    if len(servers) > MOST_SERVERS or any("\0" in server for server in servers):
        raise node.refused(
            f"more than {MOST_SERVERS} servers of a data set", "use a sampler for each server", "limit"
        )
    branches: list[list[Entry]] = []
    held = {variable: values.variables[variable] for variable in columns}
    try:
        for server in servers:
            values.variables |= {name: Text.of(value) for name, value in zip(columns, server, strict=True)}
            branches.append(made())
    finally:
        values.variables |= held
    chain = branches.pop()
    for server, steps in reversed(list(zip(servers, branches, strict=False))):
        here = tuple(
            Condition(left=f"${{{column}}}", op="matches", right=f"^{re.escape(value)}$")
            for column, value in zip(columns.values(), server, strict=True)
        )
        condition = here[0] if len(here) == 1 else Condition(all=here)
        chain = [Block.model_validate({"if": condition, "steps": tuple(steps), "else": tuple(chain)})]
    return chain


def _columns(node: JmxNode, scope: TreeScope, values: KnownValues) -> dict[str, str]:
    """Variables in the server's name that are columns of a current row -> the column."""
    found: dict[str, str] = {}
    for name in NAMED_BY:
        raw = next(filter(None, (holder.value(name) for holder in (node, *scope.defaults))), "")
        for variable in REFERENCE.findall(raw):
            parts = values.variables.get(variable, Text()).parts
            if len(parts) == 1 and parts[0].dynamic and parts[0].text.partition(".")[0] in values.feeders:
                found[variable] = parts[0].text
    return found
