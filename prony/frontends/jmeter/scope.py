"""What holds for a sampler: the configuration, timers, assertions and extractors beside it and above it.

Must not know requests.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from prony.frontends.jmeter import answers, timers
from prony.frontends.jmeter.functions import Part, Text, Values
from prony.frontends.jmeter.jmx import Node
from prony.plan.workload import Auth, Basic, Feeder

SILENT = frozenset({"ResultCollector", "Summariser", "DebugPostProcessor"})
"""They change no request; without a window nobody sees them."""
CONFIGURATION = frozenset({"ConfigTestElement", "HeaderManager", "CookieManager", "AuthManager",
                           "CacheManager", "CSVDataSet", "Arguments", *SILENT})  # fmt: skip
NAME = re.compile(r"[^\s|}.]+")


@dataclass(frozen=True, slots=True)
class Headers:
    """Names as they were written, the inner manager's first where both have one."""

    entries: tuple[tuple[str, Text], ...] = ()

    def over(self, outer: Headers) -> Headers:
        """These, and those of the outer manager that are not here."""
        own = {name.lower() for name, _ in self.entries}
        return Headers((*self.entries, *(entry for entry in outer.entries if entry[0].lower() not in own)))


@dataclass(frozen=True, slots=True)
class Scope:
    """At one place of the tree."""

    defaults: tuple[Node, ...] = ()
    """HTTP request defaults, the nearest first."""
    headers: Headers = Headers()
    cookies: bool = False
    auth: tuple[tuple[str, Auth], ...] = ()
    """Prefix of the URL -> what is sent."""
    cache: Node | None = None
    timers: tuple[Node, ...] = ()
    paced: Node | None = None
    assertions: tuple[Node, ...] = ()
    extractors: tuple[Node, ...] = ()


@dataclass(slots=True)
class Shared:
    """What is gathered over the whole plan."""

    folder: Path
    feeders: dict[str, Feeder] = field(default_factory=dict)
    cookies_anywhere: bool = False


def inner(scope: Scope, nodes: Sequence[Node], values: Values, shared: Shared, rows_at: bool) -> Scope:
    """The scope below a place where these elements stand. `rows_at`: an iteration here is one of a user."""
    for node in nodes:
        if not node.enabled:
            continue
        if node.tag in CONFIGURATION or node.tag in timers.KINDS | timers.PACING:
            if node.below and any(below.enabled for below in node.below):
                raise node.refused("elements stand below it", "move them beside it")
            scope = _with(scope, node, values, shared, rows_at)
        elif node.tag in answers.ASSERTIONS:
            scope = replace(scope, assertions=(*scope.assertions, node))
        elif node.tag in answers.EXTRACTORS:
            scope = replace(scope, extractors=(*scope.extractors, node))
    return scope


def _with(scope: Scope, node: Node, values: Values, shared: Shared, rows_at: bool) -> Scope:
    match node.tag:
        case "ConfigTestElement":
            return replace(scope, defaults=(node, *scope.defaults))
        case "HeaderManager":
            return replace(scope, headers=_headers(node, values).over(scope.headers))
        case "CookieManager":
            return replace(scope, cookies=_cookies(node, shared))
        case "AuthManager":
            return replace(scope, auth=(*_auth(node, values), *scope.auth))
        case "CacheManager":
            return replace(scope, cache=_cache(node))
        case "Arguments":
            user_variables(node, "", values)
        case "CSVDataSet":
            _rows(node, values, shared, rows_at)
        case "ConstantThroughputTimer":
            if scope.paced is not None:
                raise node.refused("it is the second throughput timer of a request", "keep one of them")
            return replace(scope, paced=node)
        case tag if tag in timers.KINDS:
            return replace(scope, timers=(*scope.timers, node))
        case _:
            _silent(node)
    return scope


def _cache(node: Node) -> Node:
    """One that begins anew with each iteration; whether it could spare a request there is looked at later."""
    if not node.flag("clearEachIteration"):
        raise node.refused(
            "a cache that spares requests of later iterations",
            "tick 'Clear cache each iteration', or remove it: every request is sent",
        )
    node.ignore("useExpires", "maxSize", "CacheManager.controlledByThread")
    node.finish()
    return node


def _silent(node: Node) -> None:
    name = node.value("filename")
    if node.tag == "ResultCollector" and name:
        raise node.refused(f"it writes {name}", "leave its file name empty and use -l")


def user_variables(node: Node, name: str, values: Values) -> None:
    """User-defined variables; functions in them are evaluated once."""
    for entry in node.members("Arguments.arguments", name):
        variable = entry.value("Argument.name")
        values.variables[variable] = values.text(entry.value("Argument.value"), entry, once=True)


def _headers(node: Node, values: Values) -> Headers:
    found: dict[str, tuple[str, Text]] = {}
    for entry in node.members("HeaderManager.headers"):
        name = values.constant(entry.value("Header.name"), entry).strip()
        if not name:
            continue
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise entry.wrong(f"the name of a header, found '{name}'")
        if name.lower() in found:
            raise entry.refused(f"the header {name} stands there twice", "join the values with a comma")
        value = values.text(entry.value("Header.value"), entry)
        if any("\r" in part.text or "\n" in part.text for part in value.parts):
            raise entry.wrong(f"the header {name} on one line")
        found[name.lower()] = (name, value)
    node.finish()
    return Headers(tuple(found.values()))


def _cookies(node: Node, shared: Shared) -> bool:
    if node.members("CookieManager.cookies"):
        raise node.refused("it brings cookies of its own", "write them in a header manager: Cookie")
    if node.flag("CookieManager.clearEachIteration") or node.flag("CookieManager.controlledByThreadGroup"):
        raise node.refused(
            "it forgets its cookies after each iteration", "untick 'Clear cookies each iteration'"
        )
    policy = node.value("CookieManager.policy")
    node.ignore("CookieManager.implementation")
    node.finish()
    shared.cookies_anywhere = policy != "ignoreCookies"
    return shared.cookies_anywhere


def _auth(node: Node, values: Values) -> tuple[tuple[str, Auth], ...]:
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
    node.ignore("AuthManager.controlledByThreadGroup")
    node.finish()
    return tuple(found)


def _rows(node: Node, values: Values, shared: Shared, rows_at: bool) -> None:
    if not rows_at:
        raise node.refused(
            "it stands in a controller or a sampler", "move it into the thread group or above it"
        )
    file = shared.folder / values.constant(node.value("filename"), node)
    names = [
        name.strip() for name in values.constant(node.value("variableNames"), node).split(",") if name.strip()
    ]
    delimiter = values.constant(node.value("delimiter", ","), node) or ","
    if node.value("fileEncoding", "UTF-8").upper() not in ("", "UTF-8", "US-ASCII", "ASCII"):
        raise node.refused("an encoding other than UTF-8", "save the file as UTF-8")
    if delimiter != ",":
        raise node.refused(f"the delimiter '{delimiter}'", "separate the columns by commas")
    recycle, stop = node.flag("recycle", True), node.flag("stopThread")
    if not recycle and not stop:
        raise node.refused("'<EOF>' is sent when the rows are used up", "let it recycle, or stop the thread")
    if node.value("shareMode", "shareMode.all") not in ("shareMode.all", "shareMode.group"):
        raise node.refused("rows of its own for each thread", "share the file among all threads")
    skips = node.flag("ignoreFirstLine")
    node.ignore("quotedData")
    node.finish()
    head = _first_line(file, node)
    if names and not skips:
        raise node.refused(
            f"variable names beside a file whose first line holds values ({file.name})",
            "give the file a first line of names, and ignore it or leave the variable names empty",
        )
    if len(names) > len(head):
        raise node.wrong(f"at most {len(head)} variable names, as many as {file.name} has columns")
    for column in head:
        if not NAME.fullmatch(column) or head.count(column) > 1:
            raise node.wrong(f"different column names without blanks in {file.name}, found '{column}'")
    name = f"rows{len(shared.feeders) + 1}"
    shared.feeders[name] = Feeder(
        file=str(file.absolute()), order="sequence", at_end="recycle" if recycle else "stop"
    )
    for variable, column in zip(names or head, head, strict=False):
        values.variables[variable] = Text((Part(f"{name}.{column}", True),))


def _first_line(file: Path, node: Node) -> list[str]:
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            head = next(csv.reader(stream), [])
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise node.wrong(f"a CSV file that can be read; {file}: {reason}") from fault
    if not head:
        raise node.wrong(f"at least one row in {file}")
    return [column.strip() for column in head]
