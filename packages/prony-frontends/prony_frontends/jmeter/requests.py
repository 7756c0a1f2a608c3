"""Translates an HTTP sampler into a step: the request that JMeter's HttpClient4 would send."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from prony.plan.step import Entry, Step
from prony_frontends.jmeter import resources
from prony_frontends.jmeter.contents import content, encoding, form_parts
from prony_frontends.jmeter.extractors import captures
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.marks import marked
from prony_frontends.jmeter.multipart import Multipart
from prony_frontends.jmeter.places import PORTS, check_sent, place
from prony_frontends.jmeter.resources import Embedded
from prony_frontends.jmeter.responses import OF_EMBEDDED, OF_PAGE, OF_REQUEST, asserts_within, expectation
from prony_frontends.jmeter.sampler_values import SamplerValues
from prony_frontends.jmeter.scope import Shared, TreeScope
from prony_frontends.jmeter.uris import Faulty, faulty

SAMPLERS = frozenset({"HTTPSamplerProxy", "HTTPSampler", "HTTPSampler2"})
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
AGENT = "Apache-HttpClient/4.5.14 (Java/17.0.15)"
"""User agent of JMeter 5.6.3, with the Java version of the reference runs."""
MOST_REDIRECTS = 20
"""JMeter's httpsampler.max_redirects."""
READ_WHOLE_BYTES = 1 << 20
"""Longer files are streamed and cannot be sent twice."""
FORM, RAW = "application/x-www-form-urlencoded", "text/plain"
MEANINGLESS = (*resources.PROPERTIES, "HTTPSampler.ipSourceType",
               "HTTPSampler.BROWSER_COMPATIBLE_MULTIPART",
               "HTTPSampler.DO_MULTIPART_POST.boundary", "HTTPSampler.monitor",
               "GraphQLHTTPSampler.query", "GraphQLHTTPSampler.variables",
               "GraphQLHTTPSampler.operationName")  # fmt: skip
"""Properties that matter only with unsupported ones or, for GraphQL, are also in the body or query."""
OF_PROXY = tuple(f"HTTPSampler.proxy{name}" for name in ("Port", "Scheme", "User", "Pass"))


@dataclass(frozen=True, slots=True)
class SamplerRequest:
    """A step with its settings for the whole load."""

    step: Step
    base: str
    """Scheme, host and port."""
    keep_alive: bool
    connect_ms: int | None
    response_ms: int | None
    node: JmxNode
    scope: TreeScope
    embedded: Embedded | None = None
    """Embedded resources to fetch."""
    resource: Step | None = None
    """Template of a resource's request, without its path."""
    faulty: Faulty | None = None
    after: tuple[Entry, ...] = ()
    """What follows from its captures."""


def request(node: JmxNode, scope: TreeScope, values: KnownValues, shared: Shared) -> SamplerRequest:
    """Translates a sampler. Raises Refused, UsageError and NotSent."""
    sampler = SamplerValues(node, scope, values)
    _refuse_extras(sampler)
    method = (sampler.constant("HTTPSampler.method") or "GET").upper()
    if method not in METHODS:
        raise node.refused(f"the method {method}", f"use one of {', '.join(METHODS)}")
    where = place(sampler)
    base, path = where.base, where.path
    follows = sampler.flag("HTTPSampler.follow_redirects") | sampler.flag("HTTPSampler.auto_redirects")
    keep_alive = sampler.flag("HTTPSampler.use_keepalive")  # by default JMeter closes
    parts = form_parts(sampler, method)
    body, body_file, query, form = (None, None, Text(), False) if parts else content(sampler, method, shared)
    if follows and body_file is not None and Path(body_file).stat().st_size > READ_WHOLE_BYTES:
        raise node.refused(
            f"following redirects with a body of more than {READ_WHOLE_BYTES >> 20} MiB",
            "untick 'Follow redirects', or request the final URL",
            "limit",
        )
    if follows:
        values.note(
            "redirects",
            "redirects are followed on the same server, each as a request "
            "(in the log the chain is one sample, as in JMeter); a redirect to another server is an error",
        )
    if query.parts and where.whole:
        values.note("whole_url", "its path is a whole URL; its parameters are ignored, as in JMeter", node)
        query = Text()
    elif query.parts:
        mark = "&" if any("?" in part.text for part in path.parts if not part.dynamic) else "?"
        query = Text.of(mark) + query
        path = path + query
    check_sent(where.url, query, node, values)
    headers, added_at = _headers(sampler, base, keep_alive, body, form, parts)
    auth = _auth(scope, base, path)
    adds = body is not None or body_file is not None or parts is not None
    adds = adds or shared.cookies is not None or scope.cache is not None
    name = values.label(node)
    embedded = resources.embedded(sampler.raw, node, values)
    held_to = OF_REQUEST if embedded is None else OF_PAGE
    expect = expectation(scope.assertions, follows, values, held_to)
    if asserts_within(scope.assertions):
        values.asserted_within.add(node.number)
    shared.server = shared.server or base
    given: dict[str, Any] = {
        "name": marked(name, node),
        "server": None if base == shared.server else base,
        "method": method,
        "path": path.engine,
        "headers": headers,
        "added_headers_at": added_at if adds else None,
        "body": None if body is None else body.engine,
        "body_file": body_file,
        "body_parts": parts.parts if parts else (),
        "expect": expect,
        "auth": auth,
        "follow_redirects": MOST_REDIRECTS if follows else 0,
    }
    connect_ms, response_ms = (
        sampler.time_ms("HTTPSampler.connect_timeout"),
        sampler.time_ms("HTTPSampler.response_timeout"),
    )
    node.finish()
    for default in scope.defaults:
        default.finish()
    given["capture"], follows_from = captures(scope.extractors, values)
    try:
        step = Step.model_validate(given)
    except ValidationError as fault:
        raise node.wrong(
            fault.errors()[0]["msg"].removeprefix("Value error, ").removeprefix("expected ")
        ) from fault
    resource = None
    if embedded is not None:
        again = body if sampler.flag("HTTPSampler.postBodyRaw") else None  # JMeter sends it every time
        headers, added_at = _headers(sampler, base, keep_alive, again, False, None)
        resource = step.model_copy(
            update={
                "name": marked(f"{name} (embedded)", node),
                "method": "GET",
                "headers": headers,
                "added_headers_at": added_at if adds else None,
                "body": None if again is None else again.engine,
                "body_file": None,
                "body_parts": (),
                "expect": expectation(scope.assertions, follows, values, OF_EMBEDDED),
                "capture": {},
            }
        )
    return SamplerRequest(
        step, base, keep_alive, connect_ms, response_ms, node, scope, embedded, resource,
        faulty(where.url, query, values), tuple(follows_from),
    )  # fmt: skip


def _refuse_extras(sampler: SamplerValues) -> None:
    node = sampler.node
    for holder in (node, *sampler.scope.defaults):
        if holder.flag("HTTPSampler.md5") and (sampler.scope.assertions or sampler.scope.extractors):
            raise holder.refused("assertions and extractors of the body's MD5 hash", "untick it")
        if holder.value("HTTPSampler.proxyHost"):
            raise holder.refused("a proxy", "name the server itself")
        holder.ignore(*OF_PROXY)  # no effect without a host
        if holder.value("HTTPSampler.ipSource"):
            raise holder.refused("a source address", "leave it empty")
        holder.ignore(*MEANINGLESS)
        implementation = holder.value("HTTPSampler.implementation")
        if implementation not in ("", "HttpClient4", "HttpClient3.1"):  # HttpClient3.1 now means HttpClient4
            sampler.values.note("implementation", f"{implementation}: headers are those of HttpClient4")


def _headers(
    sampler: SamplerValues,
    base: str,
    keep_alive: bool,
    body: Text | None,
    form: bool,
    parts: Multipart | None,
) -> tuple[Mapping[str, str], int]:
    """Headers in HttpClient4's order, and the position of cookies and length among them."""
    sent: dict[str, str] = {"Connection": "keep-alive" if keep_alive else "close"}
    host = urlsplit(base)
    for name, value, _ in sampler.scope.headers.entries:
        text = value.engine
        if name.lower() == "connection":
            sent.pop("Connection", None)
            sampler.values.note(
                "connection_header", f"the header {name} is sent without JMeter's own Connection"
            )
        elif name.lower() == "content-length":
            sampler.values.note("header_not_sent", "Content-Length is not sent, as in JMeter")
            continue
        elif name.lower() == "content-type" and parts is not None:
            sampler.values.note(
                "header_not_sent", "Content-Type is not sent with a form of parts, as in JMeter"
            )
            continue
        elif name.lower() == "host" and value.constant is not None:
            text = _host(value.constant, host.scheme, host.port)
        sent[name] = text
    has = {name.lower() for name in sent}
    kind = sampler.node.attributes.get("content-type", "")
    if "content-type" not in has and kind:  # a file's own: JMeter sets it itself
        sent["Content-Type"] = kind
    added_at = len(sent)
    if parts is not None:
        sent["Content-Type"] = parts.content_type
    elif "content-type" not in has and body is not None:
        sent["Content-Type"] = f"{FORM if form else RAW}; charset={encoding(sampler)}"
    if "host" not in has:
        sent["Host"] = _host(host.netloc.rpartition(":")[0], host.scheme, host.port)
    if "user-agent" not in has:
        sent["User-Agent"] = AGENT
    return sent, added_at


def _host(name: str, scheme: str, port: int | None) -> str:
    """With the URL's port, unless the header has one or it is the default."""
    own = re.fullmatch(r"(.*?):(\d+)", name)
    name, number = (own.group(1), int(own.group(2))) if own is not None else (name, port)
    return name if number in (None, PORTS[scheme]) else f"{name}:{number}"


def _auth(scope: TreeScope, base: str, path: Text) -> Any:
    constant = path.constant
    for prefix, auth in scope.auth:
        whole = base + (constant or path.engine)
        given = urlsplit(prefix if "://" in prefix else base + "/" + prefix.lstrip("/"))
        try:
            port = given.port or PORTS.get(given.scheme, 0)
        except ValueError:
            continue
        full = f"{given.scheme}://{(given.netloc if given.port else f'{given.netloc}:{port}')}{given.path}"
        if not prefix or whole.startswith(full):
            return auth
    return None
