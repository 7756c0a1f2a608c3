"""Cookie Managers: when cookies are cleared, and their own cookies."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from prony.plan.workload import Cookies, GivenCookie
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode


@dataclass(frozen=True, slots=True)
class OwnCookie:
    """A row of the manager's table."""

    name: str
    value: str
    domain: str
    path: str
    secure: bool
    for_subdomains: bool

    def applies_to(self, base: str) -> bool:
        """Whether a server with this scheme, host and port gets the cookie (HttpClient's RFC 6265 rules)."""
        parts = urlsplit(base)
        host, domain = (parts.hostname or "").lower(), self.domain.lower().removeprefix(".")
        if self.secure and parts.scheme != "https":
            return False
        if host == domain:
            return True
        return self.for_subdomains and bool(domain) and not _is_address(host) and host.endswith(f".{domain}")


@dataclass(frozen=True, slots=True)
class CookieRules:
    """Settings of a Cookie Manager."""

    each_iteration: bool = False
    """Cleared with each iteration of the group."""
    new_user: bool = False
    """Cleared where the group simulates a new user per iteration."""
    own: tuple[OwnCookie, ...] = ()

    def kept(self, servers: Sequence[str], new_users: bool, loops: bool) -> bool | Cookies:
        """How users keep cookies. `servers`: scheme, host and port, the load's own first. `loops`: a thread
        has several iterations.
        """
        given = tuple(_given(self.own, servers))
        each = loops and (self.each_iteration or (self.new_user and new_users))
        return Cookies(each_iteration=each, given=given) if each or given else True


def cookie_rules(node: JmxNode, values: KnownValues) -> CookieRules | None:
    """None for a manager that sends no cookies. Raises Refused and UsageError."""
    own = tuple(_own(entry, values) for entry in node.members("CookieManager.cookies"))
    by_group = node.flag("CookieManager.controlledByThreadGroup")
    clears = node.flag("CookieManager.clearEachIteration")
    policy = node.value("CookieManager.policy")
    node.ignore("CookieManager.implementation")
    node.finish()
    if policy == "ignoreCookies":
        return None
    for cookie in own:
        if not cookie.domain:
            values.note("cookie_not_sent", f"cookie {cookie.name} has no domain and is not sent", node)
    return CookieRules(clears and not by_group, by_group, tuple(cookie for cookie in own if cookie.domain))


def check_managers(managers: Sequence[JmxNode | None], values: KnownValues) -> None:
    """Checks the managers of one group's requests: a user has a single cookie store. Raises Refused where
    several managers have cookies of their own.
    """
    several = list({id(manager): manager for manager in managers if manager is not None}.values())
    if not several or (len(several) == 1 and None not in managers):
        return
    own = [manager for manager in several if manager.members("CookieManager.cookies")]
    if own:
        raise own[0].refused("cookies of some requests of the group", "put one cookie manager into the group")
    values.note(
        "one_cookie_store",
        "it applies to some requests only; here a user has one store for all cookies "
        "and sends them with every request",
        several[0],
    )


def _own(entry: JmxNode, values: KnownValues) -> OwnCookie:
    name = values.constant(entry.attributes.get("name", "") or entry.label, entry).strip()
    text = {
        key: values.constant(entry.value(f"Cookie.{key}"), entry).strip()
        for key in ("value", "domain", "path")
    }
    secure, subdomains = entry.flag("Cookie.secure"), entry.flag("Cookie.domain_specified")
    entry.ignore("Cookie.expires", "Cookie.path_specified")
    entry.finish()
    if not name or any(mark in name + text["value"] for mark in ";\r\n"):
        raise entry.wrong(f"a cookie with a name, and without semicolons, found '{name}={text['value']}'")
    path = text["path"] or "/"
    if not path.startswith("/"):
        raise entry.wrong(f"the path of a cookie that begins with /, found '{path}'")
    return OwnCookie(name, text["value"], text["domain"], path, secure, subdomains)


def _given(own: Sequence[OwnCookie], servers: Sequence[str]) -> Iterator[GivenCookie]:
    sent: set[tuple[str, str, str | None]] = set()
    for cookie in own:
        for base in servers:
            host = urlsplit(base).hostname
            if cookie.applies_to(base) and (cookie.name, cookie.path, host) not in sent:
                sent.add((cookie.name, cookie.path, host))
                server = None if base == servers[0] else base
                yield GivenCookie(name=cookie.name, value=cookie.value, path=cookie.path, server=server)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
