"""Translates a request of a flow into a step of the plan model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote

from pydantic import ValidationError

from prony.plan.step import Auth, Basic, BodyPart, Step
from prony.plan.target import Url, parse_url
from prony_frontends.artillery.endpoints import NAMED, Endpoints
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
from prony_frontends.artillery.script import Date, ScriptNode, UserFails
from prony_frontends.artillery.templates import (
    DATE,
    UNDEFINED,
    NameScope,
    constant,
    is_undefined,
    json_text,
    rendered,
    str_of,
    text_of,
)
from prony_frontends.base import Note

Ending = Literal["unanswered", "capture", "redirect", "body"]
USER_AGENT = "Artillery (https://artillery.io)"
GOT_AGENT = "got (https://github.com/sindresorhus/got)"
"""Of got, Artillery's client, where config.defaults.headers replaces Artillery's."""
METHODS = frozenset({"get", "post", "put", "patch", "delete", "head", "options"})
KEYS = frozenset({
    "url", "uri", "name", "qs", "json", "body", "form", "formData", "headers", "cookie", "auth", "capture",
    "match", "expect", "ifTrue", "probability", "followRedirect", "maxRedirects", "gzip",
    "username", "password",
})  # fmt: skip
CALLING = frozenset({"beforeRequest", "afterResponse"})
"""Functions around it."""
MOST_REDIRECTS = 10
"""Default of got, Artillery's client; maxRedirects of a request overrides it."""
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
SAFE = "%/:?#[]@!$&'()*+,;=-._~|^\\"
"""Characters kept in a path by Node 20; % stays, as the script has encoded the rest."""
BENT = re.compile(r"\$\{|\\|\?$|/(?:\.|%2e){1,2}(?:[/?]|$)", re.IGNORECASE)
"""Parts of a path that only the engine can write as Node does: values, \\ and steps to folders above."""
MALFORMED = re.compile(r"%(?![0-9A-Fa-f]{2})")
NOT_IN_HEADERS = re.compile(r"[^\t\x20-\x7e\x80-\xff]")
INVALID_HEADER = "ERR_INVALID_CHAR"
"""Node's error for a header value with other characters than those of Latin-1."""
GOT_ERROR = "ERR_GOT_REQUEST_ERROR"
"""Error name of got, Artillery's client, for a request that it does not send."""
OPTIONS_OF_GOT = frozenset({
    "searchParams", "responseType", "https", "http2", "prefixUrl", "agent", "dnsCache", "dnsLookupIpVersion",
    "encoding", "hooks", "localAddress", "lookup", "maxHeaderSize", "pagination", "methodRewriting",
    "cookieJar", "decompress", "allowGetBody", "createConnection", "cache", "request",
    "insecureHTTPParser", "setContentLengthHeader", "throwHttpErrors", "ignoreInvalidCookies",
})  # fmt: skip
"""Other keys that change a request, passed to Artillery's client."""


@dataclass(frozen=True, slots=True)
class ScriptSettings:
    """Settings for all requests of a script."""

    target: Url
    base_path: str
    """Path of config.target, prefixed unchanged to relative URLs."""
    auth: Auth | None
    """Of the user and password in config.target."""
    headers: ScriptNode | None
    """Default headers instead of the user agent."""
    expects: bool
    """Whether the plugin expect is on."""
    default_200: bool
    """Whether requests without an expectation expect 200."""
    strict: bool
    """Whether captures must match, unless they say otherwise."""
    cookies: Mapping[str, ScriptNode]
    """Cookies set by every request."""
    hook: bool = False
    """Whether it is in before or after: any status is accepted, and nothing else is checked."""
    elsewhere: frozenset[str] = frozenset()
    """In a hook: variables used in other sections."""
    pool: int | None = None
    """Concurrent requests per shared connection; None: each user has a connection of its own."""
    endpoints: Endpoints = NAMED
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
    ignored: tuple[Note, ...]
    """A note for each key without effect."""
    plain: bool
    """Whether its response is read, and requested without compression."""


def request(
    method: str,
    params: ScriptNode,
    scope: NameScope,
    settings: ScriptSettings,
    plain: bool = False,
    built: bool = False,
) -> SentRequest:
    """Translates a request. `plain`: functions read the response; `built`: JavaScript builds the request.
    Raises Refused, UserFails and UsageError.
    """
    if not isinstance(params.value, dict):
        raise params.wrong("keys of a request, such as url")
    for key, child in params.items():
        if key in OPTIONS_OF_GOT:
            raise child.refused(f"{method} '{key}'", f"use {', '.join(sorted(KEYS))}")
    url = params.get("url") or params.get("uri")
    if url is None:
        raise params.wrong("a url")
    server, path, auth = _where(url, params.get("qs"), scope, settings, built)
    body, parts, content_type = _body(method, params, scope)
    found = looked(params, scope, settings.strict)
    otherwise = STATUS_200 if settings.default_200 else NOTHING
    wanted = expected(params, scope, otherwise) if settings.expects and not settings.hook else NOTHING
    hops = _hops(params, scope)
    plain = plain or found.body or wanted.body
    headers = _headers(params, scope, settings, content_type, compressed=not plain)
    stated = headers.pop("content-length", None)  # the engine adds it to every request
    if stated is not None and stated != _length(method, body, parts):
        raise params.refused(f"a Content-Length of '{stated}' other than the body's", "leave the header out")
    own = _cookies(params, scope, settings)
    added_at = len(headers)
    if "host" not in headers:
        there = settings.target if server is None else parse_url(server)[0]
        headers["Host"] = _host(there)
    if "connection" not in headers:
        headers["Connection"] = "keep-alive"
    label = params.get("name")
    try:
        step = Step(
            name=settings.endpoints.called(url, label, settings.target, settings.base_path, scope),
            method=method.upper(),
            server=server,
            path=path,
            path_as="url" if BENT.search(path) else "plain",
            headers=headers,
            added_headers_at=added_at,
            node_headers=any(
                "${" in value or not value.isascii() for value in (*headers.values(), own or "")
            ),
            set_cookies=own,
            body=body,
            body_parts=parts,
            auth=None if "authorization" in headers else _auth(params, scope) or auth,
            capture=found.captures,
            expect=expectation(NOTHING, found, True).model_copy(update={"status": ()})
            if settings.hook
            else expectation(wanted, found, hops is not None),
            follow_redirects=hops or 0,
            redirects_keep_method=bool(hops) and method == "post",
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
) -> tuple[str | None, str, Auth | None]:
    """The server, where it differs from the target, and the path; for built requests a placeholder path. And
    what its user and password become.
    """
    server: str | None = None
    auth = settings.auth
    written = str(UNDEFINED) if is_undefined(url, scope) else rendered(url, scope)
    text = re.sub(r"[\t\r\n]", "", written.rstrip())
    if built and not text.startswith(("http://", "https://", "/")):
        return None, "/", auth
    if text.startswith(("http://", "https://")):
        scheme, _, rest = text.partition("://")
        authority = re.split("[/?#]", rest, maxsplit=1)[0]
        path = rest.removeprefix(authority)
        if "${" in authority:
            raise url.refused(
                "a host that is drawn during the run", "write the host, or use --target", "varies"
            )
        auth = of_userinfo(authority)
        there = parse_url(f"{scheme}://{authority}").target
        if there.url != settings.target.url:
            server = there.url
        path = path if path.startswith("/") else f"/{path}"
    elif text.startswith("/"):
        path = settings.base_path + text
    elif "${" in text:
        raise url.refused("a URL that begins with neither / nor http", "begin it with / (config.target)")
    else:
        raise UserFails(url, "a URL that begins with neither / nor http", f"Invalid URL - {written}")
    path = path.partition("#")[0]
    if qs is not None:
        pairs = "&".join(_pairs(qs, scope))
        path = path.partition("?")[0] + (f"?{pairs}" if pairs else "")
    path, mark, query = path.partition("?")
    if MALFORMED.search(_literal(path + mark + query)):
        raise UserFails(url, "a URL with a % that encodes nothing", "URI malformed")
    in_query = SAFE.replace("'", "") + "{}`"
    return server, _quoted_around(path, SAFE) + mark + _quoted_around(query, in_query), auth


def of_userinfo(authority: str) -> Auth | None:
    """The header that Node sends for `user:password@host`."""
    userinfo, at, _ = authority.rpartition("@")
    user, _, password = userinfo.partition(":")
    return Auth(basic=Basic(user=unquote(user), password=unquote(password))) if at else None


def _host(target: Url) -> str:
    """Without the default port."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    return host if target.port == (443 if target.https else 80) else f"{host}:{target.port}"


def _literal(path: str) -> str:
    """Without placeholders."""
    return re.sub(r"(?<!\$)\$\{[^}]*\}", "xx", path)


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


def _pairs(node: ScriptNode, scope: NameScope) -> list[str]:
    """A query as by Node's querystring, in browser encoding."""
    pairs = []
    for key, child in node.items():
        for value in child.elements() if isinstance(child.value, list) else (child,):
            _no_date(value)
            nothing = (
                value.value is None or isinstance(value.value, list | dict) or is_undefined(value, scope)
            )
            text = "" if nothing else str_of(value.value)
            pairs.append(f"{text_of(key, value, scope, 'url')}={text_of(text, value, scope, 'url')}")
    return pairs


def _no_date(node: ScriptNode) -> None:
    if isinstance(node.value, Date):
        raise node.refused(*DATE)


def _in_form(node: ScriptNode, scope: NameScope) -> str:
    """A value of a form, as String() of JavaScript writes it."""
    _no_date(node)
    if isinstance(node.value, dict):
        return "[object Object]"
    if isinstance(node.value, list):
        return ",".join("" if one.value is None else _in_form(one, scope) for one in node.elements())
    return str(UNDEFINED) if is_undefined(node, scope) else str_of(node.value)


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
    if "json" in given and (params.children["json"].value not in (False, 0, "") or len(given) == 1):
        return json_text(params.children["json"], scope), "application/json"
    if "form" in given:
        pairs = [
            f"{text_of(key, value, scope, 'url')}={text_of(_in_form(value, scope), value, scope, 'url')}"
            for key, value in params.children["form"].items()
        ]
        return "&".join(pairs), "application/x-www-form-urlencoded"
    if "body" not in given:
        return None, None
    body = params.children["body"]
    if not isinstance(body.value, str):
        raise UserFails(body, "a body that is not a text (json takes structures)", GOT_ERROR)
    return rendered(body, scope), None


def _length(method: str, body: str | None, parts: tuple[BodyPart, ...]) -> str | None:
    """The Content-Length of a constant body; None: it has none, or the body changes."""
    if parts or (body is None and method not in ("post", "put", "patch")):
        return None
    text = body or ""
    return None if re.search(r"(?<!\$)\$\{", text) else str(len(text.replace("$${", "${").encode()))


def _is_given(node: ScriptNode | None, scope: NameScope) -> bool:
    return node is not None and not is_undefined(node, scope)


def _headers(
    params: ScriptNode, scope: NameScope, settings: ScriptSettings, content_type: str | None, compressed: bool
) -> dict[str, str]:
    headers: dict[str, str] = {"user-agent": USER_AGENT if settings.headers is None else GOT_AGENT}
    nothing: set[str] = set()
    for given in (settings.headers, params.get("headers")):
        for name, value in () if given is None else given.items():
            lines = value.elements() if isinstance(value.value, list) else [value]
            if len(lines) > 1:
                raise value.refused("a header of several lines", "write its values into one, with commas")
            if not HEADER_NAME.fullmatch(name):
                raise value.wrong(f"a header's name, not {name!r}")
            if not lines or is_undefined(lines[0], scope):
                nothing.add(name.lower())
                continue
            if is_undefined(lines[0], scope, None):
                raise UserFails(value, "a header that is null", GOT_ERROR)
            nothing.discard(name.lower())
            is_object = isinstance(lines[0].value, dict)
            headers[name.lower()] = "[object Object]" if is_object else rendered(lines[0], scope)
            if NOT_IN_HEADERS.search(headers[name.lower()]):
                raise UserFails(lines[0], "a header value outside Latin-1", INVALID_HEADER)
    headers = {name: value for name, value in headers.items() if name not in nothing}
    if content_type is not None:
        headers.setdefault("content-type", content_type)
    gzip = params.children.get("gzip")
    if compressed and (gzip is None or gzip.value is not False):
        headers.setdefault("accept-encoding", "gzip, deflate, br")
    return headers


def _cookies(params: ScriptNode, scope: NameScope, settings: ScriptSettings) -> str | None:
    """Cookies that the request puts into the jar, a line for each; None: none."""
    own = params.get("cookie")
    jar = {**settings.cookies, **({} if own is None else dict(own.items()))}
    return "\n".join(f"{name}={rendered(value, scope)}" for name, value in jar.items()) or None


def _auth(params: ScriptNode, scope: NameScope) -> Auth | None:
    """Of `auth`, or of the keys that Artillery's client has for it."""
    node, keys = params.get("auth"), ("user", "pass")
    if node is None:
        node, keys = params, ("username", "password")
    else:
        node.only("auth", frozenset(keys), "give user and pass")
    given = [None if (child := node.get(key)) is None else str_of(constant(child, scope)) for key in keys]
    if node is params and given == [None, None]:
        return None
    user, password = (text or "" for text in given)
    return Auth(basic=Basic(user=user, password=password))
