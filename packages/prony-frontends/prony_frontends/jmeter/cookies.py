"""Cookie managers: when a thread's cookies are cleared, and those that the manager itself holds."""

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

    def goes_to(self, base: str) -> bool:
        """Whether a server with this scheme, host and port is sent it (HttpClient's RFC 6265 rules)."""
        parts = urlsplit(base)
        host, domain = (parts.hostname or "").lower(), self.domain.lower().removeprefix(".")
        if self.secure and parts.scheme != "https":
            return False
        if host == domain:
            return True
        return self.for_subdomains and bool(domain) and not _is_address(host) and host.endswith(f".{domain}")


@dataclass(frozen=True, slots=True)
class CookieRules:
    """What a cookie manager says."""

    each_iteration: bool = False
    """Cleared with each iteration of the group."""
    new_user: bool = False
    """Cleared where the group makes a thread another user with each iteration."""
    own: tuple[OwnCookie, ...] = ()

    def kept(self, servers: Sequence[str], new_users: bool, loops: bool) -> bool | Cookies:
        """As users here keep them. `servers`: scheme, host and port, the load's own first. `loops`: a thread
        has several iterations.
        """
        given = tuple(_given(self.own, servers))
        each = loops and (self.each_iteration or (self.new_user and new_users))
        return Cookies(each_iteration=each, given=given) if each or given else True


def cookie_rules(node: JmxNode, values: KnownValues) -> CookieRules | None:
    """None: a manager whose policy is to send none. Raises Refused and UsageError."""
    own = tuple(_own(entry, values) for entry in node.members("CookieManager.cookies"))
    by_group = node.flag("CookieManager.controlledByThreadGroup")
    clears = node.flag("CookieManager.clearEachIteration")
    policy = node.value("CookieManager.policy")
    node.ignore("CookieManager.implementation")
    node.finish()
    if policy == "ignoreCookies":
        return None
    for one in own:
        if not one.domain:
            values.note(f"{node.element}: the cookie {one.name} has no domain and is not sent, as in JMeter")
    return CookieRules(clears and not by_group, by_group, tuple(one for one in own if one.domain))


def check_managers(managers: Sequence[JmxNode | None], values: KnownValues) -> None:
    """Of the requests of one group: a user here has one store of cookies. Raises Refused where several
    managers hold cookies of their own.
    """
    several = list({id(one): one for one in managers if one is not None}.values())
    if not several or (len(several) == 1 and None not in managers):
        return
    own = [one for one in several if one.members("CookieManager.cookies")]
    if own:
        raise own[0].refused(
            "its cookies are for some requests of the group only",
            "put one cookie manager into the thread group",
        )
    values.note(
        f"{several[0].element}: it stands below some requests only; here a user keeps the cookies of all of "
        "them together, and sends them with all"
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
    for one in own:
        for base in servers:
            host = urlsplit(base).hostname
            if one.goes_to(base) and (one.name, one.path, host) not in sent:
                sent.add((one.name, one.path, host))
                server = None if base == servers[0] else base
                yield GivenCookie(name=one.name, value=one.value, path=one.path, server=server)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
