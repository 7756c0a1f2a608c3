"""Combines translated groups into one workload: scenarios, rows, cookies and cache."""

from __future__ import annotations

from collections.abc import Sequence

from prony.plan.workload import Cache, Cookies, Workload
from prony_frontends.jmeter.connections import TranslatedGroup, other_addresses
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.marks import parted
from prony_frontends.jmeter.requests import SamplerRequest
from prony_frontends.jmeter.scope import Shared, cache_of


def workload(
    name: str, parts: Sequence[TranslatedGroup], values: KnownValues, shared: Shared, *, alone: bool = False
) -> Workload:
    """The workload of these groups; `alone`: a single group's steps are the workload's own."""
    for part in parts:
        if part.cookies != parts[0].cookies:
            raise part.group.node.refused("groups with different cookie rules", "use one, above the groups")
    cookies = _cookies(parts, shared)
    requests = [request for part in parts for request in part.requests]
    cache = _cache(requests, any(part.group.new_users for part in parts), values)
    addresses = other_addresses(requests, shared.server or "")
    if alone:
        (only,) = parts
        return Workload(
            name=name,
            steps=only.entries,
            variables=only.variables,
            feeders=shared.feeders,
            cookies=cookies,
            cache=cache,
            server_addresses=addresses,
        )
    drawn = {feeder for part in parts for feeder in part.feeders}
    feeders = {name: feeder for name, feeder in shared.feeders.items() if name in drawn}
    return Workload(
        name=name,
        scenarios=tuple(part.scenario for part in parts),
        feeders=feeders,
        cookies=cookies,
        cache=cache,
        server_addresses=addresses,
    )


def _cookies(parts: Sequence[TranslatedGroup], shared: Shared) -> bool | Cookies:
    rules = parts[0].cookies
    if rules is None or shared.server is None:
        return False
    bases = (request.base for part in parts for request in part.requests)
    servers = tuple(dict.fromkeys((shared.server, *bases)))
    new_users = any(part.group.new_users for part in parts)
    return rules.kept(servers, new_users, any(part.group.loops != 1 for part in parts))


def _cache(requests: Sequence[SamplerRequest], new_users: bool, values: KnownValues) -> Cache | None:
    """The common cache of all requests, or None."""
    first = requests[0].scope.cache
    for request in requests:
        if request.scope.cache is first:
            continue
        node = request.scope.cache or first
        assert node is not None
        raise node.refused(
            f"the request '{parted(request.step.name)[0]}' has not the first request's cache",
            "put one cache manager into the thread group or above it",
        )
    return None if first is None else cache_of(first, new_users, values)
