"""Where the requests of a plan go, over which connections, and how long each may take."""

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
"""For a response, where the plan names no time: JMeter would wait for ever."""
CONNECT_MS = 20_000


@dataclass(frozen=True, slots=True)
class TranslatedGroup:
    """What a group became."""

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
    """The load's own server. As with JMeter any certificate will do; a DNS cache manager says where it is."""
    assert shared.server is not None
    found = parse_url(shared.server).target
    at = _address(requests[0], shared.server)
    secure = any(one.base.startswith("https:") for one in requests)
    return found.model_copy(
        update={
            "tls": TlsOptions(insecure=True) if secure else found.tls,
            "addresses": (at,) if at else (),
        }
    )


def other_addresses(requests: Sequence[SamplerRequest], own: str) -> dict[str, str]:
    """Servers beside the load's own -> where a DNS cache manager says that they are."""
    found = {one.base: _address(one, one.base) for one in requests if one.base != own}
    return {base: at for base, at in found.items() if at}


def _address(one: SamplerRequest, base: str) -> str:
    """HOST:PORT of this server; empty where the system resolves its name."""
    url = parse_url(base).target
    address = one.scope.hosts.get(url.host.lower())
    if not address:
        return ""
    return f"[{address}]:{url.port}" if ":" in address else f"{address}:{url.port}"


def connections(phases: Sequence[Sequence[TranslatedGroup]]) -> Connections:
    """Kept or not; a new one for each iteration where each is somebody else's. Raises Refused."""
    parts = [part for phase in phases for part in phase]
    keeping = {one.keep_alive for part in parts for one in part.requests}
    new = next((part for part in parts if part.group.new_users), None)
    if new is None or keeping == {False}:
        return Connections(keep_alive=keeping != {False})
    numbers = {_always_sent(part.entries) for part in parts}
    number = numbers.pop()
    spares = any(one.scope.cache is not None for part in parts for one in part.requests)
    several = len({one.base for part in parts for one in part.requests}) > 1
    if several or spares or number is None or numbers:
        raise new.group.node.refused(
            "a new user for every iteration, with several servers, a cache or iterations of unlike lengths",
            "tick 'Same user on each iteration'",
        )
    staying = next((part for part in parts if not part.group.new_users and part.group.loops != 1), None)
    if staying is not None:
        raise new.group.node.refused(
            "a new user for every iteration, beside a group whose users stay",
            "tick 'Same user on each iteration' in all groups or in none",
        )
    return Connections(max_requests=number)


def _always_sent(entries: Sequence[Entry]) -> int | None:
    """Requests of an iteration; None where that differs."""
    total = 0
    for entry in entries:
        if isinstance(entry, Step):
            total += entry.repeat
            continue
        if entry.pause or entry.pace or entry.set:
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
    """The time that a response may take, in ms: the longest of any sampler."""
    if any(one.response_ms is None for one in requests):
        values.note(
            f"where a sampler has no response timeout, a response that takes longer than "
            f"{UNLIMITED_MS // 1000} s is an error (JMeter would wait for ever)"
        )
    known = {UNLIMITED_MS if one.response_ms is None else one.response_ms for one in requests}
    if len(known) > 1:
        values.note(f"the longest response timeout, {max(known)} ms, holds for all requests")
    return max(known)


def longest_to_connect(requests: Sequence[SamplerRequest], values: KnownValues) -> int:
    """The time that connecting may take, in ms: the longest of any sampler."""
    known = {one.connect_ms or CONNECT_MS for one in requests}
    if len(known) > 1:
        usual = (
            f" ({CONNECT_MS} ms where a sampler has none)" if any(not r.connect_ms for r in requests) else ""
        )
        values.note(f"the longest connect timeout, {max(known)} ms, holds for all connections{usual}")
    return max(known)
