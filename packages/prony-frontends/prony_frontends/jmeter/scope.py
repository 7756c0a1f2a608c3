"""Elements in scope of a sampler: configuration, timers, assertions and extractors next to and above it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from prony.plan.step import Auth, Basic, Entry
from prony.plan.workload import Cache, Feeder
from prony_frontends.jmeter import (
    calls,
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
"""Elements of a controller's iterations may also be below these."""
DIGITS = re.compile(r"([^#0-9.,;%\u2030\u00a4'$]*)(?:#*(0+)|#+)((?!E)[^#0-9.,;%\u2030\u00a4'$]*)")
"""A java.text.DecimalFormat pattern that only sets the minimum number of digits."""
COUNTING = frozenset({"CounterConfig", "RandomVariableConfig"})
"""Elements that advance a variable whenever their parent runs."""


@dataclass(frozen=True, slots=True)
class Headers:
    """Headers with names as written; the inner manager wins."""

    entries: tuple[tuple[str, Text, tuple[Entry, ...]], ...] = ()
    """Name, value, and what its functions set before a request."""

    def over(self, outer: Headers) -> Headers:
        """These, and headers of the outer manager with other names."""
        own = {name.lower() for name, *_ in self.entries}
        return Headers((*self.entries, *(entry for entry in outer.entries if entry[0].lower() not in own)))


@dataclass(frozen=True, slots=True)
class TreeScope:
    """Elements in scope at a place in the tree."""

    defaults: tuple[JmxNode, ...] = ()
    """HTTP Request Defaults, nearest first."""
    headers: Headers = Headers()
    auth: tuple[tuple[str, Auth], ...] = ()
    """URL prefix -> credentials."""
    cache: JmxNode | None = None
    cookies: JmxNode | None = None
    """The Cookie Manager in scope."""
    timers: tuple[JmxNode, ...] = ()
    paced: JmxNode | None = None
    assertions: tuple[JmxNode, ...] = ()
    extractors: tuple[JmxNode, ...] = ()
    parameters: tuple[JmxNode, ...] = ()
    """User Parameters before each sampler, outermost first."""
    scripts: tuple[JmxNode, ...] = ()
    """Translatable scripts before each sampler, outermost first."""
    processors: tuple[JmxNode, ...] = ()
    """Extractors and translatable scripts after each sampler, outermost first."""
    handler: JmxNode | None = None
    """Handler of errors."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Lower-case host name -> address from a DNS Cache Manager."""


@dataclass(slots=True)
class Shared:
    """Data gathered over the whole plan."""

    folder: Path
    feeders: dict[str, Feeder] = field(default_factory=dict)
    cookies: CookieRules | None = None
    """None: no Cookie Manager, or one that sends no cookies."""
    server: str | None = None
    """Scheme, host and port of the first request: the load's own server."""
    transactions: dict[str, Style] = field(default_factory=dict)
    """Transaction styles by marked name."""
    paces: dict[int, str] = field(default_factory=dict)
    """Throughput timer (identity) -> name of its pace."""
    given: dict[int, tuple[Entry, ...]] = field(default_factory=dict)
    """User Parameters (identity) of a group -> assignments for a thread."""


def gather(top: JmxNode, values: KnownValues) -> None:
    """Gathers user-defined variables, which hold from the start, then names of changing variables."""
    last_sample.declare(top, values)
    every = [node for node in top.everything() if node is not top]
    for node in every:
        if node.tag == "Arguments":
            user_variables(node, "", values)
    for node in every:
        values.grouped |= extractors.groups_in(node)
        values.listed |= extractors.listed_in(node)
    for node in sorted(every, key=lambda node: node.tag not in COUNTING):
        if node.tag in extractors.EXTRACTORS:
            for variable, every_match in extractors.names(node):
                name = values.changing(variable, node)
                values.clean.discard(name)
                if every_match:
                    values.several[variable] = name
                if every_match and node.flag("JSONPostProcessor.compute_concat"):
                    values.changing(f"{variable}_ALL", node)
                for group in sorted(number for base, number in values.grouped if base == variable):
                    values.changing(f"{variable}_g{group}", node)
        elif node.tag == "ForeachController":
            values.listed.add(node.value("ForeachController.inputVal"))
            name = values.changing(values.constant(node.value("ForeachController.returnVal"), node), node)
            values.clean.discard(name)
        elif node.tag in COUNTING:
            name = node.value("CounterConfig.name" if node.tag == "CounterConfig" else "variableName")
            name = values.constant(name, node)
            values.clean.add(values.changing(name, node))
        elif node.tag == parameters.TAG:
            parameters.declare(node, values)
    plain_scripts.declare(top, values)


def counted(nodes: Sequence[JmxNode], values: KnownValues, users: int | None) -> dict[str, str]:
    """Assignments by counters and random variables among these elements: name -> text of the engine."""
    assignments: dict[str, str] = {}
    below = (child for node in nodes if node.enabled and node.tag in SAMPLING for child in node.below)
    for node in (*nodes, *below):  # JMeter advances both with the controller around them
        if not node.enabled or node.tag not in COUNTING:
            continue
        if any(below.enabled for below in node.below):
            raise node.refused("it has child elements", "move them next to it")
        variable, text = (
            _counter(node, values, users) if node.tag == "CounterConfig" else _drawn(node, values)
        )
        name = values.changing(variable, node)
        if not re.fullmatch(r"[\w.-]*\$\{[^}]*\}[\w.-]*", text):
            values.clean.discard(name)
        assignments[name] = text
        node.finish()
    return assignments


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
        raise node.wrong(f"a maximum of at least the start, found {end} after {start}")
    own = node.flag("CounterConfig.per_user")
    again = node.flag("CounterConfig.reset_on_tg_iteration") and own
    per = " per=iteration" if again else " per=user" if own and users != 1 else ""
    last = f" end={end}" if raw_end and end < 10**14 else ""
    before, digits, after = _format(node, values.constant(node.value("CounterConfig.format"), node))
    name = values.unique("counter")
    text = f"${{sequence name={name} start={start} step={step}{last}{per}{digits}}}"
    return values.constant(node.value("CounterConfig.name"), node), f"{before}{text}{after}"


def _format(node: JmxNode, form: str) -> tuple[str, str, str]:
    """A number format: prefix, the engine's filter, and suffix."""
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
        values.note("seed", "its seed is not used; --seed applies to all draws", node)
    node.ignore("perThread")
    name = values.constant(node.value("variableName"), node)
    before, digits, after = _format(node, form)
    if low < 0 and before:
        raise node.refused(f"the number format '{form}' of {low}", "use numbers from 0, or zeros alone")
    return name, f"{before}${{random int {low} {high}{digits}}}{after}"


def inner(
    scope: TreeScope, nodes: Sequence[JmxNode], values: KnownValues, shared: Shared, rows_at: bool
) -> TreeScope:
    """The scope below a place with these elements. `rows_at`: an iteration here is a user's iteration. Of
    sibling defaults and Header Managers the first wins, as in JMeter.
    """
    defaults: list[JmxNode] = []
    headers = Headers()
    for node in nodes:
        if not node.enabled:
            continue
        if node.tag in CONFIGURATION or node.tag in timers.KINDS | timers.PACING:
            if node.below and any(below.enabled for below in node.below):
                raise node.refused("it has child elements", "move them next to it")
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
                raise node.refused(
                    "a second action after an error", "use only one for each request", "conflict"
                )
            scope = replace(scope, handler=node)
        elif node.tag in plain_scripts.AFTER:
            scope = replace(scope, processors=(*scope.processors, node))
    return replace(scope, defaults=(*defaults, *scope.defaults), headers=headers.over(scope.headers))


def at_iteration(nodes: Sequence[JmxNode], values: KnownValues, shared: Shared, rows_at: bool) -> list[Entry]:
    """Entries at the start of each iteration of the parent controller: rows of data sets and values of User
    Parameters, including those below a sampler. `rows_at`: an iteration is a user's iteration, whose rows are
    drawn implicitly.
    """
    below = [child for node in nodes if node.enabled and node.tag in SAMPLING for child in node.below]
    here = [node for node in (*nodes, *below) if node.enabled]
    entries: list[Entry] = []
    for node in here:
        if node.tag == "CSVDataSet" and not rows_at:
            entries += rows.in_controller(node, values)
        elif node.tag == "CSVDataSet" and any(node is child for child in below):
            rows.data_set(node, values)
    each = [node for node in here if node.tag == parameters.TAG and parameters.each_iteration(node)]
    return entries + parameters.given(each, values, shared.given)


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
            pass  # declared in `gather`
        case "CSVDataSet":
            if rows_at:  # otherwise `at_iteration` draws them
                rows.data_set(node, values)
        case parameters.TAG:
            if not parameters.each_iteration(node):
                return replace(scope, parameters=(*scope.parameters, node))
        case tag if tag in timers.PACING:
            if scope.paced is not None:
                raise node.refused(
                    "it is the second throughput timer of a request", "use only one", "conflict"
                )
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
    """Each user's cache; `new_users`: each iteration is a new user."""
    fresh, clear = node.flag("useExpires"), node.flag("clearEachIteration")
    if node.flag("CacheManager.controlledByThread"):
        clear = new_users
    most = values.whole(node.value("maxSize"), node, "maxSize", 5000)
    if fresh:
        values.note("cached_requests", "requests for fresh cache entries are not sent and have no row", node)
    if most < 1:
        return None
    return Cache(fresh=fresh, each_iteration=clear, most_urls=most, rules="jmeter")


def user_variables(node: JmxNode, name: str, values: KnownValues) -> None:
    """User-defined variables; their functions are evaluated once. Variables of one element cannot refer to
    each other, as in JMeter.
    """
    values.variables |= {
        entry.value("Argument.name"): values.text(entry.value("Argument.value"), entry, once=True)
        for entry in node.members("Arguments.arguments", name)
    }


def _headers(node: JmxNode, values: KnownValues) -> Headers:
    by_name: dict[str, tuple[str, Text, tuple[Entry, ...]]] = {}
    for entry in node.members("HeaderManager.headers"):
        name = values.constant(entry.value("Header.name"), entry).strip()
        if not name:
            continue
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise entry.wrong(f"the name of a header, found '{name}'")
        if name.lower() in by_name:
            raise entry.refused(f"the header {name} twice", "join the values with a comma", "conflict")
        with calls.within(None, values) as stores:
            value = values.text(entry.value("Header.value"), entry)
        if any("\r" in part.text or "\n" in part.text for part in value.parts):
            raise entry.wrong(f"the header {name} on one line")
        by_name[name.lower()] = (name, value, tuple(stores))
    node.finish()
    return Headers(tuple(by_name.values()))


def _hosts(node: JmxNode, values: KnownValues) -> dict[str, str]:
    """Hosts listed by the manager; other names are resolved by the system."""
    addresses: dict[str, str] = {}
    for entry in node.members("DNSCacheManager.hosts"):
        name = values.constant(entry.value("StaticHost.Name"), entry).strip().lower()
        address = values.constant(entry.value("StaticHost.Address"), entry).strip()
        if name and address:
            addresses[name] = address.partition(",")[0].strip()
            if "," in address:
                values.note("first_address", f"only the first address of {name} is used", node)
    if node.flag("DNSCacheManager.isCustomResolver") and node.members("DNSCacheManager.servers"):
        values.note("names_resolved_once", "this host resolves unlisted names, once", node)
    node.ignore("DNSCacheManager.clearEachIteration", "DNSCacheManager.servers")
    node.finish()
    return addresses


def _auth(node: JmxNode, values: KnownValues) -> tuple[tuple[str, Auth], ...]:
    credentials: list[tuple[str, Auth]] = []
    for entry in node.members("AuthManager.auth_list"):
        mechanism = entry.value("Authorization.mechanism") or "BASIC_DIGEST"
        entry.ignore("Authorization.domain", "Authorization.realm")
        if mechanism not in ("BASIC", "BASIC_DIGEST"):
            raise entry.refused(f"the mechanism {mechanism}", "use BASIC, or the header Authorization")
        if mechanism == "BASIC_DIGEST":
            values.note("basic_sent_first", "Basic is sent with the first request; Digest never", node)
        user = values.constant(entry.value("Authorization.username"), entry)
        password = values.constant(entry.value("Authorization.password"), entry)
        url = values.constant(entry.value("Authorization.url"), entry)
        credentials.append((url, Auth(basic=Basic(user=user, password=password))))
    node.ignore("AuthManager.controlledByThreadGroup", "AuthManager.clearEachIteration")
    node.finish()
    return tuple(credentials)
