"""Targets of a plan's requests, their connections and timeouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.plan.load import Connections
from prony.plan.step import Entry, Step
from prony.plan.target import TlsOptions, Url, parse_url
from prony.plan.workload import Scenario
from prony_frontends.jmeter.cookies import CookieRules
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.groups import Group
from prony_frontends.jmeter.requests import SamplerRequest
from prony_frontends.jmeter.scope import Shared

UNLIMITED_MS = 60_000
"""Response timeout where the plan has none; JMeter would wait for ever."""
CONNECT_MS = 20_000


@dataclass(frozen=True, slots=True)
class TranslatedGroup:
    """A translated thread group."""

    group: Group
    entries: tuple[Entry, ...]
    requests: tuple[SamplerRequest, ...]
    variables: dict[str, str]
    feeders: tuple[str, ...]
    cookies: CookieRules | None

    @property
    def scenario(self) -> Scenario:
        """Of its users."""
        return Scenario(name=self.group.name, steps=self.entries, variables=self.variables)


def target(requests: Sequence[SamplerRequest], shared: Shared) -> Url:
    """The load's own server, with any certificate; a DNS Cache Manager may set the address."""
    assert shared.server is not None
    url = parse_url(shared.server).target
    at = _address(requests[0], shared.server)
    secure = any(request.base.startswith("https:") for request in requests)
    return url.model_copy(
        update={"tls": TlsOptions(insecure=True) if secure else url.tls, "addresses": (at,) if at else ()}
    )


def other_addresses(requests: Sequence[SamplerRequest], own: str) -> dict[str, str]:
    """Other servers -> addresses set by a DNS Cache Manager."""
    addresses = {request.base: _address(request, request.base) for request in requests if request.base != own}
    return {base: at for base, at in addresses.items() if at}


def _address(one: SamplerRequest, base: str) -> str:
    """HOST:PORT of this server; empty where the system resolves it."""
    url = parse_url(base).target
    address = one.scope.hosts.get(url.host.lower())
    if not address:
        return ""
    return f"[{address}]:{url.port}" if ":" in address else f"{address}:{url.port}"


def connections(phases: Sequence[Sequence[TranslatedGroup]]) -> Connections:
    """Keep-alive, and a new connection per iteration where iterations are new users. Raises Refused."""
    parts = [part for phase in phases for part in phase]
    keeping = {request.keep_alive for part in parts for request in part.requests}
    new = next((part for part in parts if part.group.new_users), None)
    if new is None or keeping == {False}:
        return Connections(keep_alive=keeping != {False})
    numbers = {_always_sent(part.entries) for part in parts}
    number = numbers.pop()
    spares = any(request.scope.cache is not None for part in parts for request in part.requests)
    several = len({request.base for part in parts for request in part.requests}) > 1
    if several or spares or number is None or numbers:
        raise new.group.node.refused(
            "a new user per iteration, with several servers, a cache or iterations of different lengths",
            "tick 'Same user on each iteration'",
        )
    staying = next((part for part in parts if not part.group.new_users and part.group.loops != 1), None)
    if staying is not None:
        raise new.group.node.refused(
            "a new user per iteration, next to a group with lasting users",
            "tick 'Same user on each iteration' in all groups or in none",
        )
    return Connections(max_requests=number)


def _always_sent(entries: Sequence[Entry]) -> int | None:
    """Requests per iteration; None where it varies."""
    total = 0
    for entry in entries:
        if isinstance(entry, Step):
            total += entry.repeat
            continue
        if entry.pause or entry.pace or entry.set or entry.note:
            continue
        inside = _always_sent(entry.steps)
        if inside is None:
            return None
        if entry.loop is not None and entry.loop.count is not None:
            total += entry.loop.count * inside
        elif entry.group or entry.transaction:
            total += inside
        else:
            return None
    return total


def longest(requests: Sequence[SamplerRequest], values: KnownValues) -> int:
    """Response timeout in ms: the longest of all samplers."""
    if any(request.response_ms is None for request in requests):
        values.note(
            "response_timeout",
            f"without a response timeout of the sampler, a response time above "
            f"{UNLIMITED_MS // 1000} s is an error (JMeter would wait for ever)",
        )
    timeouts_ms = {
        UNLIMITED_MS if request.response_ms is None else request.response_ms for request in requests
    }
    if len(timeouts_ms) > 1:
        values.note(
            "response_timeout", f"the longest response timeout, {max(timeouts_ms)} ms, applies to all"
        )
    return max(timeouts_ms)


def longest_to_connect(requests: Sequence[SamplerRequest], values: KnownValues) -> int:
    """Connect timeout in ms: the longest of all samplers."""
    timeouts_ms = {request.connect_ms or CONNECT_MS for request in requests}
    if len(timeouts_ms) > 1:
        usual = (
            f" ({CONNECT_MS} ms where a sampler has none)" if any(not r.connect_ms for r in requests) else ""
        )
        values.note(
            "connect_timeout", f"the longest connect timeout, {max(timeouts_ms)} ms, applies to all{usual}"
        )
    return max(timeouts_ms)
