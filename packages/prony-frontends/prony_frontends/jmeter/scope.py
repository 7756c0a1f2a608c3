"""What holds for a sampler: the configuration, timers, assertions and extractors beside it and above it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from prony.plan.step import Auth, Basic, Entry
from prony.plan.workload import Cache, Feeder
from prony_frontends.jmeter import (
    extractors,
    last_sample,
    on_error,
    parameters,
    plain_scripts,
    responses,
    rows,
    timers,
)
from prony_frontends.jmeter.cookies import CookieRules, cookie_rules
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.outline import Style

CONFIGURATION = frozenset({"ConfigTestElement", "HeaderManager", "CookieManager", "AuthManager",
                           "CacheManager", "CSVDataSet", "Arguments", "DNSCacheManager",
                           parameters.TAG})  # fmt: skip
SAMPLING = frozenset({"HTTPSamplerProxy", "HTTPSampler", "HTTPSampler2", "DebugSampler", "TestAction",
                      "kg.apc.jmeter.samplers.DummySampler", *plain_scripts.SAMPLERS})  # fmt: skip
"""Below them elements of a controller's iterations may stand too."""
DIGITS = re.compile(r"([^#0-9.,;%\u2030\u00a4'$]*)(?:#*(0+)|#+)((?!E)[^#0-9.,;%\u2030\u00a4'$]*)")
"""A format of java.text.DecimalFormat that only says how many digits there are at least."""
COUNTING = frozenset({"CounterConfig", "RandomVariableConfig"})
"""They give a variable its next value whenever their parent is walked."""


@dataclass(frozen=True, slots=True)
class Headers:
    """Names as they were written, the inner manager's first where both have one."""

    entries: tuple[tuple[str, Text], ...] = ()

    def over(self, outer: Headers) -> Headers:
        """These, and those of the outer manager that are not here."""
        own = {name.lower() for name, _ in self.entries}
        return Headers((*self.entries, *(entry for entry in outer.entries if entry[0].lower() not in own)))


@dataclass(frozen=True, slots=True)
class TreeScope:
    """At one place of the tree."""

    defaults: tuple[JmxNode, ...] = ()
    """HTTP request defaults, the nearest first."""
    headers: Headers = Headers()
    auth: tuple[tuple[str, Auth], ...] = ()
    """Prefix of the URL -> what is sent."""
    cache: JmxNode | None = None
    cookies: JmxNode | None = None
    """The cookie manager that holds here."""
    timers: tuple[JmxNode, ...] = ()
    paced: JmxNode | None = None
    assertions: tuple[JmxNode, ...] = ()
    extractors: tuple[JmxNode, ...] = ()
    parameters: tuple[JmxNode, ...] = ()
    """User Parameters that are given before each sampler, the outermost first."""
    scripts: tuple[JmxNode, ...] = ()
    """Plain ones before each sampler, the outermost first."""
    processors: tuple[JmxNode, ...] = ()
    """Extractors and plain scripts after each sampler, the outermost first."""
    handler: JmxNode | None = None
    """What comes after an error."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Name of a host in small letters -> the address that a DNS cache manager gives it."""


@dataclass(slots=True)
class Shared:
    """What is gathered over the whole plan."""

    folder: Path
    feeders: dict[str, Feeder] = field(default_factory=dict)
    cookies: CookieRules | None = None
    """None: no cookie manager, or one that sends none."""
    server: str | None = None
    """Scheme, host and port of the first request: the load's own server."""
    transactions: dict[str, Style] = field(default_factory=dict)
    """How they count, by their names with their marks."""
    paces: dict[int, str] = field(default_factory=dict)
    """A throughput timer (its identity) -> the name of its pace."""
    given: dict[int, tuple[Entry, ...]] = field(default_factory=dict)
    """User Parameters (their identity) of a group -> what gives a thread its values."""


def gather(top: JmxNode, values: KnownValues) -> None:
    """User-defined variables anywhere in the plan hold from its start; then the names of what changes."""
    last_sample.declare(top, values)
    every = [node for node in top.everything() if node is not top]
    for node in every:
        if node.tag == "Arguments":
            user_variables(node, "", values)
    for node in every:
        values.grouped |= extractors.groups_in(node)
    for node in every:
        if node.tag in extractors.EXTRACTORS:
            for variable, every_match in extractors.names(node):
                name = values.changing(variable, node)
                if every_match:
                    values.several[variable] = name
                for group in sorted(number for base, number in values.grouped if base == variable):
                    values.changing(f"{variable}_g{group}", node)
        elif node.tag == "ForeachController":
            values.listed.add(node.value("ForeachController.inputVal"))
            values.changing(values.constant(node.value("ForeachController.returnVal"), node), node)
        elif node.tag in COUNTING:
            name = node.value("CounterConfig.name" if node.tag == "CounterConfig" else "variableName")
            values.changing(values.constant(name, node), node)
        elif node.tag == parameters.TAG:
            parameters.declare(node, values)
    plain_scripts.declare(top, values)


def counted(nodes: Sequence[JmxNode], values: KnownValues, users: int | None) -> dict[str, str]:
    """What counters and random variables among these elements set: name -> text of the engine."""
    found: dict[str, str] = {}
    for node in nodes:
        if not node.enabled or node.tag not in COUNTING:
            continue
        if any(below.enabled for below in node.below):
            raise node.refused("elements stand below it", "move them beside it")
        variable, text = (
            _counter(node, values, users) if node.tag == "CounterConfig" else _drawn(node, values)
        )
        found[values.changing(variable, node)] = text
        node.finish()
    return found


def _counter(node: JmxNode, values: KnownValues, users: int | None) -> tuple[str, str]:
    start, step = (
        values.whole(node.value(f"CounterConfig.{name}"), node, f"CounterConfig.{name}", default)
        for name, default in (("start", 0), ("incr", 1))
    )
    raw_end = values.constant(node.value("CounterConfig.end"), node).strip()
    end = values.whole(raw_end[:15], node, "CounterConfig.end", 0)
    if start < 0 or step < 1:
        raise node.wrong(f"a start of at least 0 and a step of at least 1, found {start} and {step}")
    if raw_end and end < start:
        raise node.wrong(f"a maximum from the start on, found {end} after {start}")
    own = node.flag("CounterConfig.per_user")
    again = node.flag("CounterConfig.reset_on_tg_iteration") and own
    per = " per=iteration" if again else " per=user" if own and users != 1 else ""
    last = f" end={end}" if raw_end and end < 10**14 else ""
    before, digits, after = _format(node, values.constant(node.value("CounterConfig.format"), node))
    name = values.unique("counter")
    text = f"${{sequence name={name} start={start} step={step}{last}{per}{digits}}}"
    return values.constant(node.value("CounterConfig.name"), node), f"{before}{text}{after}"


def _format(node: JmxNode, form: str) -> tuple[str, str, str]:
    """A number format: what stands before the number, the engine's filter, and what stands behind it."""
    zeros = DIGITS.fullmatch(form or "0")
    if zeros is None:
        raise node.refused(f"the number format '{form}'", "use zeros, such as 0000, with letters around them")
    before, digits, after = zeros.groups("")
    return before, f" | digits {len(digits)}" if len(digits) > 1 else "", after


def _drawn(node: JmxNode, values: KnownValues) -> tuple[str, str]:
    low, high = (values.whole(node.value(name), node, name, 1) for name in ("minimumValue", "maximumValue"))
    if low > high:
        raise node.wrong(f"a minimum that is not above the maximum, found {low} and {high}")
    form = values.constant(node.value("outputFormat"), node)
    if node.value("randomSeed"):
        values.note(f"{node.element}: its seed is not used; --seed is that of all draws")
    node.ignore("perThread")
    name = values.constant(node.value("variableName"), node)
    before, digits, after = _format(node, form)
    if low < 0 and before:
        raise node.refused(f"the number format '{form}' of {low}", "use numbers from 0, or zeros alone")
    return name, f"{before}${{random int {low} {high}{digits}}}{after}"


def inner(
    scope: TreeScope, nodes: Sequence[JmxNode], values: KnownValues, shared: Shared, rows_at: bool
) -> TreeScope:
    """The scope below a place where these elements stand. `rows_at`: an iteration here is one of a user. Of
    defaults and of header managers side by side the first counts, as in JMeter.
    """
    defaults: list[JmxNode] = []
    headers = Headers()
    for node in nodes:
        if not node.enabled:
            continue
        if node.tag in CONFIGURATION or node.tag in timers.KINDS | timers.PACING:
            if node.below and any(below.enabled for below in node.below):
                raise node.refused("elements stand below it", "move them beside it")
            if node.tag == "ConfigTestElement":
                defaults.append(node)
            elif node.tag == "HeaderManager":
                headers = headers.over(_headers(node, values))
            else:
                scope = _with(scope, node, values, shared, rows_at)
        elif node.tag in responses.ASSERTIONS:
            scope = replace(scope, assertions=(*scope.assertions, node))
        elif node.tag in extractors.EXTRACTORS:
            scope = replace(scope, extractors=(*scope.extractors, node), processors=(*scope.processors, node))
        elif node.tag in plain_scripts.BEFORE:
            scope = replace(scope, scripts=(*scope.scripts, node))
        elif node.tag == on_error.HANDLER:
            if scope.handler is not None:
                raise node.refused("a second action after an error", "keep one of them for each request")
            scope = replace(scope, handler=node)
        elif node.tag in plain_scripts.AFTER:
            scope = replace(scope, processors=(*scope.processors, node))
    return replace(scope, defaults=(*defaults, *scope.defaults), headers=headers.over(scope.headers))


def at_iteration(nodes: Sequence[JmxNode], values: KnownValues, shared: Shared, rows_at: bool) -> list[Entry]:
    """What each iteration of the controller around these elements begins with: rows of data sets and values
    of User Parameters, also of those that stand below a sampler. `rows_at`: an iteration is one of a user,
    whose rows are drawn without a word.
    """
    below = [child for node in nodes if node.enabled and node.tag in SAMPLING for child in node.below]
    here = [node for node in (*nodes, *below) if node.enabled]
    found: list[Entry] = []
    for node in here:
        if node.tag == "CSVDataSet" and not rows_at:
            found += rows.in_controller(node, values)
        elif node.tag == "CSVDataSet" and any(node is child for child in below):
            rows.data_set(node, values)
    each = [node for node in here if node.tag == parameters.TAG and parameters.each_iteration(node)]
    return found + parameters.given(each, values, shared.given)


def _with(scope: TreeScope, node: JmxNode, values: KnownValues, shared: Shared, rows_at: bool) -> TreeScope:
    match node.tag:
        case "CookieManager":
            shared.cookies = cookie_rules(node, values)
            return replace(scope, cookies=node)
        case "AuthManager":
            return replace(scope, auth=(*_auth(node, values), *scope.auth))
        case "CacheManager":
            return replace(scope, cache=_cache(node))
        case "Arguments":
            pass  # known since the start: `gather`
        case "CSVDataSet":
            if rows_at:  # else `at_iteration` draws them
                rows.data_set(node, values)
        case parameters.TAG:
            if not parameters.each_iteration(node):
                return replace(scope, parameters=(*scope.parameters, node))
        case tag if tag in timers.PACING:
            if scope.paced is not None:
                raise node.refused("it is the second throughput timer of a request", "keep one of them")
            return replace(scope, paced=node)
        case "DNSCacheManager":
            return replace(scope, hosts={**scope.hosts, **_hosts(node, values)})
        case tag if tag in timers.KINDS:
            return replace(scope, timers=(*scope.timers, node))
    return scope


def _cache(node: JmxNode) -> JmxNode:
    node.ignore("clearEachIteration", "useExpires", "maxSize", "CacheManager.controlledByThread")
    node.finish()
    return node


def cache_of(node: JmxNode, new_users: bool, values: KnownValues) -> Cache | None:
    """The cache of each user; `new_users`: a thread is another user with each iteration."""
    fresh, clear = node.flag("useExpires"), node.flag("clearEachIteration")
    if node.flag("CacheManager.controlledByThread"):
        clear = new_users
    most = values.whole(node.value("maxSize"), node, "maxSize", 5000)
    if fresh:
        values.note(
            f"{node.element}: what is fresh in a user's cache is not sent and has no row, as in JMeter"
        )
    if most < 1:
        return None
    return Cache(fresh=fresh, each_iteration=clear, most_urls=most, rules="jmeter")


def user_variables(node: JmxNode, name: str, values: KnownValues) -> None:
    """User-defined variables; functions in them are evaluated once. Those of one element know nothing of each
    other, as in JMeter: they are defined together.
    """
    values.variables |= {
        entry.value("Argument.name"): values.text(entry.value("Argument.value"), entry, once=True)
        for entry in node.members("Arguments.arguments", name)
    }


def _headers(node: JmxNode, values: KnownValues) -> Headers:
    found: dict[str, tuple[str, Text]] = {}
    for entry in node.members("HeaderManager.headers"):
        name = values.constant(entry.value("Header.name"), entry).strip()
        if not name:
            continue
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise entry.wrong(f"the name of a header, found '{name}'")
        if name.lower() in found:
            raise entry.refused(f"header {name} is given twice", "join the values with a comma")
        value = values.text(entry.value("Header.value"), entry)
        if any("\r" in part.text or "\n" in part.text for part in value.parts):
            raise entry.wrong(f"the header {name} on one line")
        found[name.lower()] = (name, value)
    node.finish()
    return Headers(tuple(found.values()))


def _hosts(node: JmxNode, values: KnownValues) -> dict[str, str]:
    """The hosts that it names itself. Other names are the system's to resolve."""
    found: dict[str, str] = {}
    for entry in node.members("DNSCacheManager.hosts"):
        name = values.constant(entry.value("StaticHost.Name"), entry).strip().lower()
        address = values.constant(entry.value("StaticHost.Address"), entry).strip()
        if name and address:
            found[name] = address.partition(",")[0].strip()
            if "," in address:
                values.note(f"{node.element}: of the addresses of {name} the first is used")
    if node.flag("DNSCacheManager.isCustomResolver") and node.members("DNSCacheManager.servers"):
        values.note(
            f"{node.element}: names that it does not list itself are resolved by this host, once, and not by "
            "its servers"
        )
    node.ignore("DNSCacheManager.clearEachIteration", "DNSCacheManager.servers")
    node.finish()
    return found


def _auth(node: JmxNode, values: KnownValues) -> tuple[tuple[str, Auth], ...]:
    found: list[tuple[str, Auth]] = []
    for entry in node.members("AuthManager.auth_list"):
        mechanism = entry.value("Authorization.mechanism") or "BASIC_DIGEST"
        entry.ignore("Authorization.domain", "Authorization.realm")
        if mechanism not in ("BASIC", "BASIC_DIGEST"):
            raise entry.refused(f"the mechanism {mechanism}", "use BASIC, or the header Authorization")
        if mechanism == "BASIC_DIGEST":
            values.note(f"{node.element}: Basic is sent with the first request too; Digest is not done")
        user = values.constant(entry.value("Authorization.username"), entry)
        password = values.constant(entry.value("Authorization.password"), entry)
        url = values.constant(entry.value("Authorization.url"), entry)
        found.append((url, Auth(basic=Basic(user=user, password=password))))
    node.ignore("AuthManager.controlledByThreadGroup", "AuthManager.clearEachIteration")
    node.finish()
    return tuple(found)
