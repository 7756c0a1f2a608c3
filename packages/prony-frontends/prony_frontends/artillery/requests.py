"""Translates a request of a flow into a step of the plan model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from pydantic import ValidationError

from prony.plan.step import Auth, Basic, BodyPart, Step
from prony.plan.target import Url, parse_url
from prony_frontends.artillery.multipart import multipart
from prony_frontends.artillery.processor import NONE, Processor
from prony_frontends.artillery.responses import (
    NOTHING,
    STATUS_200,
    Expected,
    ReadFromResponse,
    expectation,
    expected,
    looked,
)
from prony_frontends.artillery.script import ScriptNode, UserFails
from prony_frontends.artillery.templates import (
    UNDEFINED,
    NameScope,
    constant,
    is_undefined,
    json_text,
    rendered,
    str_of,
    text_of,
)

Ending = Literal["unanswered", "capture", "redirect", "body"]
USER_AGENT = "Artillery (https://artillery.io)"
METHODS = frozenset({"get", "post", "put", "patch", "delete", "head", "options"})
KEYS = frozenset({
    "url", "uri", "name", "qs", "json", "body", "form", "formData", "headers", "cookie", "auth", "capture",
    "match", "expect", "ifTrue", "probability", "followRedirect", "maxRedirects", "gzip",
})  # fmt: skip
CALLING = frozenset({"beforeRequest", "afterResponse"})
"""Functions around it."""
MOST_REDIRECTS = 10
"""Default of got, Artillery's client; maxRedirects of a request overrides it."""
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
SAFE = "%/:?#[]@!$&'()*+,;=-._~|"
"""Characters kept in a path; % stays, as the script has encoded the rest."""
GOT_ERROR = "ERR_GOT_REQUEST_ERROR"
"""Error name of got, Artillery's client, for a request that it does not send."""
OPTIONS_OF_GOT = frozenset({
    "searchParams", "responseType", "https", "http2", "prefixUrl", "agent", "dnsCache", "dnsLookupIpVersion",
    "encoding", "hooks", "localAddress", "lookup", "maxHeaderSize", "pagination", "username", "password",
    "methodRewriting", "cookieJar", "decompress", "allowGetBody", "createConnection", "cache", "request",
    "insecureHTTPParser", "setContentLengthHeader", "throwHttpErrors", "ignoreInvalidCookies",
})  # fmt: skip
"""Other keys that change a request, passed to Artillery's client."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Names of requests in the plugin metrics-by-endpoint."""

    only_names: bool = False
    strip_query: bool = False
    ignores_unnamed: bool = False

    def called(self, url: ScriptNode, name: ScriptNode | None, base_path: str) -> str:
        """Path as in the script, and the name."""
        if name is not None and self.only_names:
            return str_of(name.value)
        text = str_of(url.value)
        if "://" in text:
            rest = text.partition("://")[2]
            text = "/" + rest.partition("/")[2]
        else:
            text = base_path.replace("$${", "${") + text
        text = text.partition("#")[0]
        if self.strip_query:
            text = text.partition("?")[0]
        text = text.strip() or "/"
        return text if name is None else f"{text} ({str_of(name.value)})"


@dataclass(frozen=True, slots=True)
class ScriptSettings:
    """Settings for all requests of a script."""

    target: Url
    base_path: str
    """Path of config.target, prefixed unchanged to relative URLs."""
    headers: ScriptNode | None
    """Default headers instead of the user agent."""
    expects: bool
    """Whether the plugin expect is on."""
    default_200: bool
    """Whether requests without an expectation expect 200."""
    strict: bool
    """Whether captures must match, unless they say otherwise."""
    cookies: Mapping[str, str]
    """Cookies sent with every request."""
    hook: bool = False
    """Whether it is in before or after: any status is accepted, and nothing else is checked."""
    elsewhere: frozenset[str] = frozenset()
    """In a hook: variables used in other sections."""
    pool: int | None = None
    """Concurrent requests per shared connection; None: each user has a connection of its own."""
    endpoints: Endpoints = Endpoints()
    """Names of requests in the plugin metrics-by-endpoint."""
    processor: Processor = NONE


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A translated request with the data for its report."""

    step: Step
    wanted: Expected
    found: ReadFromResponse
    named: bool
    """Whether the script names it."""
    ignored: tuple[str, ...]
    """A note for each key without effect."""
    plain: bool
    """Whether its response is read, and requested without compression."""


def request(
    method: str,
    params: ScriptNode,
    scope: NameScope,
    settings: ScriptSettings,
    cookies: dict[str, str],
    plain: bool = False,
    built: bool = False,
) -> SentRequest:
    """Translates a request. `cookies`: set by the script so far; the request's own are added. `plain`:
    functions read the response; `built`: JavaScript builds the request. Raises Refused, UserFails and
    UsageError.
    """
    if not isinstance(params.value, dict):
        raise params.wrong("keys of a request, such as url")
    for key, child in params.items():
        if key in OPTIONS_OF_GOT:
            raise child.refused(f"{method} '{key}'", f"use {', '.join(sorted(KEYS))}")
    url = params.get("url") or params.get("uri")
    if url is None:
        raise params.wrong("a url")
    server, path = _where(url, params.get("qs"), scope, settings, built)
    body, parts, content_type = _body(method, params, scope)
    found = looked(params, scope, settings.strict)
    otherwise = STATUS_200 if settings.default_200 else NOTHING
    wanted = expected(params, scope, otherwise) if settings.expects and not settings.hook else NOTHING
    hops = _hops(params, scope)
    plain = plain or found.body or wanted.body
    headers = _headers(params, scope, settings, content_type, compressed=not plain)
    own = _cookies(params.get("cookie"), scope)
    cookies.update(own)
    if own or settings.cookies:  # Artillery's cookie jar is used only then
        jar = {**settings.cookies, **cookies}
        headers["cookie"] = "; ".join(f"{key}={value}" for key, value in jar.items())
    headers.setdefault("Connection", "keep-alive")
    label = params.get("name")
    try:
        step = Step(
            name=settings.endpoints.called(url, label, settings.base_path),
            method=method.upper(),
            server=server,
            path=path,
            headers=headers,
            body=body,
            body_parts=parts,
            auth=_auth(params.get("auth"), scope),
            capture=found.captures,
            expect=expectation(NOTHING, found, True).model_copy(update={"status": ()})
            if settings.hook
            else expectation(wanted, found, hops is not None),
            follow_redirects=hops or 0,
            end_on=() if settings.hook else _ends(wanted, found, hops is not None),
        )
    except ValidationError as fault:
        first = fault.errors()[0]
        raise params.wrong(f"a request that can be sent ({first['msg']})") from fault
    unread = params.unread(f"the key of {method}", KEYS | CALLING)
    ignored = (*unread, *found.ignored, *wanted.ignored)
    return SentRequest(step, wanted, found, label is not None, ignored, plain)


def _ends(wanted: Expected, found: ReadFromResponse, follows: bool) -> tuple[Ending, ...]:
    """Failures that end the user, as in Artillery."""
    ends: list[Ending] = ["unanswered"]
    if any(one.default is None for one in found.captures.values()):
        ends.append("capture")
    if follows:
        ends.append("redirect")
    if found.matches and not wanted.body:  # else the failed check would be unknown
        ends.append("body")
    return tuple(ends)


def _hops(params: ScriptNode, scope: NameScope) -> int | None:
    """Number of redirects to follow; None: a redirect is an ordinary response."""
    follows = params.children.get("followRedirect")
    if follows is not None and not isinstance(follows.value, bool):
        raise follows.wrong("true or false")
    if follows is not None and not follows.value:
        return None
    node = params.get("maxRedirects")
    if node is None:
        return MOST_REDIRECTS
    most = ScriptNode(constant(node, scope), node.file, node.line, {}).number("a number from 0 to 100")
    if not 0 <= most <= 100 or not most.is_integer():
        raise node.wrong("a number from 0 to 100")
    return int(most)


def _where(
    url: ScriptNode, qs: ScriptNode | None, scope: NameScope, settings: ScriptSettings, built: bool
) -> tuple[str | None, str]:
    """The server, where it differs from the target, and the path; for built requests a placeholder path."""
    server: str | None = None
    text = str(UNDEFINED) if is_undefined(url, scope) else rendered(url, scope).strip()
    if built and not text.startswith(("http://", "https://", "/")):
        return None, "/"
    if text.startswith(("http://", "https://")):
        scheme, _, rest = text.partition("://")
        authority, slash, path = rest.partition("/")
        if "${" in authority:
            raise url.refused(
                "a host that is drawn during the run", "write the host, or give it with --target"
            )
        there = parse_url(f"{scheme}://{authority.partition('?')[0]}").target
        if there.url != settings.target.url:
            server = there.url
        path = slash + path if slash else "/"
    elif text.startswith("/"):
        path = settings.base_path + text
    elif "${" in text:
        raise url.refused(
            "a URL that begins with neither / nor http", "begin it with / (after config.target)"
        )
    else:
        raise UserFails(url, "a URL that begins with neither / nor http", f"Invalid URL - {text}")
    path = path.partition("#")[0]
    if qs is not None:
        pairs = "&".join(_pairs(qs, scope, undefined=""))
        path = path.partition("?")[0] + (f"?{pairs}" if pairs else "")
    path, mark, query = path.partition("?")
    return server, _quoted_around(path, SAFE) + mark + _quoted_around(query, SAFE.replace("'", "") + "{}")


def _quoted_around(path: str, safe: str) -> str:
    """Quotes the path except for placeholders."""
    out, at = "", 0
    while (start := path.find("${", at)) >= 0:
        literal = path[start - 1 : start] == "$"  # the plan model reads it as ${
        end = path.find("}", start)
        end = start + 2 if literal else len(path) if end < 0 else end + 1
        out += quote(path[at:start], safe=safe)
        out += "%7B" if literal and "{" not in safe else path[start:end]
        at = end
    return out + quote(path[at:], safe=safe)


def _pairs(node: ScriptNode, scope: NameScope, undefined: str) -> list[str]:
    """A query or form in browser encoding; `undefined` replaces undefined values."""
    pairs = []
    for key, child in node.items():
        for value in child.elements() if isinstance(child.value, list) else (child,):
            text = "" if value.value is None else str_of(value.value)
            if is_undefined(value, scope):
                text = undefined
            pairs.append(f"{text_of(key, value, scope, 'url')}={text_of(text, value, scope, 'url')}")
    return pairs


def _body(
    method: str, params: ScriptNode, scope: NameScope
) -> tuple[str | None, tuple[BodyPart, ...], str | None]:
    """Text or parts, and content type, from json, form, formData or body."""
    if (form := params.get("formData")) is not None:
        if method in ("get", "head"):
            raise UserFails(form, f"a {method.upper()} with a body", GOT_ERROR)
        parts, kind = multipart(form, scope)
        return None, parts, kind
    text, kind_of_text = _text_body(method, params, scope)
    return text, (), kind_of_text


def _text_body(method: str, params: ScriptNode, scope: NameScope) -> tuple[str | None, str | None]:
    given = [key for key in ("json", "form", "body") if _is_given(params.get(key), scope)]
    if not given:
        return "" if method in ("post", "put", "patch") else None, None
    if method in ("get", "head"):
        raise UserFails(params.children[given[0]], f"a {method.upper()} with a body", GOT_ERROR)
    if "json" in given and params.children["json"].value not in (False, 0, ""):
        return json_text(params.children["json"], scope), "application/json"
    if "form" in given:
        pairs = _pairs(params.children["form"], scope, undefined="undefined")
        return "&".join(pairs), "application/x-www-form-urlencoded"
    if "body" not in given:
        return None, None
    body = params.children["body"]
    if not isinstance(body.value, str):
        raise UserFails(body, "a body that is not a text (json takes structures)", GOT_ERROR)
    return rendered(body, scope), None


def _is_given(node: ScriptNode | None, scope: NameScope) -> bool:
    return node is not None and not is_undefined(node, scope)


def _headers(
    params: ScriptNode, scope: NameScope, settings: ScriptSettings, content_type: str | None, compressed: bool
) -> dict[str, str]:
    headers: dict[str, str] = {"user-agent": USER_AGENT} if settings.headers is None else {}
    for given in (settings.headers, params.get("headers")):
        for name, value in () if given is None else given.items():
            headers.pop(name.lower(), None)
            lines = value.elements() if isinstance(value.value, list) else [value]
            if len(lines) > 1:
                raise value.refused("a header of several lines", "write its values into one, with commas")
            if not HEADER_NAME.fullmatch(name):
                raise value.wrong(f"a header's name, not {name!r}")
            if lines and not is_undefined(lines[0], scope):
                headers[name.lower()] = rendered(lines[0], scope)
                if {"\r", "\n"} & {*headers[name.lower()]}:
                    raise lines[0].wrong("a value in one line")
    if content_type is not None:
        headers.setdefault("content-type", content_type)
    gzip = params.children.get("gzip")
    if compressed and (gzip is None or gzip.value is not False):
        headers.setdefault("accept-encoding", "gzip, deflate, br")
    headers.pop("content-length", None)  # added to every request
    return headers


def _cookies(node: ScriptNode | None, scope: NameScope) -> dict[str, str]:
    return {} if node is None else {name: rendered(value, scope) for name, value in node.items()}


def _auth(node: ScriptNode | None, scope: NameScope) -> Auth | None:
    if node is None:
        return None
    node.only("auth", frozenset({"user", "pass"}), "give user and pass")

    def credential(key: str) -> str:
        child = node.get(key)
        return "" if child is None else str_of(constant(child, scope))

    return Auth(basic=Basic(user=credential("user"), password=credential("pass")))
