"""An HTTP sampler into a step: the request that JMeter's HttpClient4 would send, and where it goes.

Must not know loops or groups.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic import ValidationError

from prony.frontends.jmeter import resources
from prony.frontends.jmeter.extractors import captures
from prony.frontends.jmeter.functions import KnownValues, Text, TextPart
from prony.frontends.jmeter.jmx import JmxNode
from prony.frontends.jmeter.multipart import Multipart, multipart
from prony.frontends.jmeter.resources import Embedded
from prony.frontends.jmeter.responses import OF_EMBEDDED, OF_PAGE, OF_REQUEST, expectation
from prony.frontends.jmeter.scope import Shared, TreeScope
from prony.plan.step import Step

SAMPLERS = frozenset({"HTTPSamplerProxy", "HTTPSampler", "HTTPSampler2"})
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
WITH_BODY = ("POST", "PUT", "PATCH")
QUERY_ONLY = ("GET", "DELETE", "OPTIONS")
AGENT = "Apache-HttpClient/4.5.14 (Java/17.0.15)"
"""What JMeter 5.6.3 says of itself; the version of Java is that of the reference runs."""
MOST_REDIRECTS = 20
"""JMeter's httpsampler.max_redirects."""
READ_WHOLE_BYTES = 1 << 20
"""A longer file is read while it is sent, and cannot be sent twice."""
FORM, RAW = "application/x-www-form-urlencoded", "text/plain"
ILLEGAL = re.compile(r"""[|{}^<>"`\\\x00-\x1f]""")
"""JMeter fails with a URISyntaxException."""
PORTS = {"http": 80, "https": 443}
MEANINGLESS = (*resources.PROPERTIES, "HTTPSampler.ipSourceType",
               "HTTPSampler.BROWSER_COMPATIBLE_MULTIPART",
               "HTTPSampler.DO_MULTIPART_POST.boundary", "HTTPSampler.monitor")  # fmt: skip
"""They only matter beside something that is refused."""


@dataclass(frozen=True, slots=True)
class SamplerRequest:
    """A step, and what belongs to the load as a whole."""

    step: Step
    base: str
    """Scheme, host and port."""
    keep_alive: bool
    connect_ms: int | None
    response_ms: int | None
    node: JmxNode
    scope: TreeScope
    embedded: Embedded | None = None
    """What is fetched besides."""
    resource: Step | None = None
    """The request for one of them, but for its path."""


@dataclass(slots=True)
class _Asked:
    """A sampler's properties with the defaults behind them."""

    node: JmxNode
    scope: TreeScope
    values: KnownValues

    def raw(self, name: str) -> str:
        found = [node.value(name) for node in (self.node, *self.scope.defaults)]
        return next((text for text in found if text), "")

    def constant(self, name: str) -> str:
        return self.values.constant(self.raw(name), self.node).strip()

    def time_ms(self, name: str) -> int | None:
        found = self.values.whole(self.raw(name), self.node, name, 0)
        return found if found > 0 else None


def request(node: JmxNode, scope: TreeScope, values: KnownValues, shared: Shared) -> SamplerRequest:
    """The sampler at this place. Raises Refused and UsageError."""
    asked = _Asked(node, scope, values)
    _refuse_extras(asked)
    method = (asked.constant("HTTPSampler.method") or "GET").upper()
    if method not in METHODS:
        raise node.refused(f"the method {method}", f"use one of {', '.join(METHODS)}")
    base, path = _where(asked)
    follows = node.flag("HTTPSampler.follow_redirects") or node.flag("HTTPSampler.auto_redirects")
    keep_alive = node.flag("HTTPSampler.use_keepalive")  # without a word JMeter closes
    parts = _parts(asked, method)
    body, body_file, query, form = (None, None, Text(), False) if parts else _content(asked, method, shared)
    if follows and body_file is not None and Path(body_file).stat().st_size > READ_WHOLE_BYTES:
        raise node.refused(
            f"following redirects with a body of more than {READ_WHOLE_BYTES >> 20} MiB",
            "untick 'Follow redirects', or name the place itself",
        )
    if follows:
        values.note(
            "redirects are followed on the same server, and each counts as a request "
            "(in the log the whole way is one sample, as in JMeter); one to another server is an error"
        )
    if query.parts:
        mark = "&" if any("?" in part.text for part in path.parts if not part.dynamic) else "?"
        path = path + Text.of(mark) + query
    headers = _headers(asked, base, keep_alive, body, body_file, form, parts)
    name = values.constant(node.label, node)
    embedded = resources.embedded(asked.raw, node, values)
    held_to = OF_REQUEST if embedded is None else OF_PAGE
    expect = expectation(scope.assertions, follows, values, held_to)
    shared.server = shared.server or base
    given: dict[str, Any] = {
        "name": name,
        "server": None if base == shared.server else base,
        "method": method,
        "path": path.engine,
        "headers": headers,
        "body": None if body is None else body.engine,
        "body_file": body_file,
        "body_parts": parts.parts if parts else (),
        "expect": expect,
        "auth": _auth(scope, base, path),
        "follow_redirects": MOST_REDIRECTS if follows else 0,
    }
    connect_ms, response_ms = (
        asked.time_ms("HTTPSampler.connect_timeout"),
        asked.time_ms("HTTPSampler.response_timeout"),
    )
    node.finish()
    for default in scope.defaults:
        default.finish()
    given["capture"] = captures(scope.extractors, values)
    try:
        step = Step.model_validate(given)
    except ValidationError as fault:
        raise node.wrong(
            fault.errors()[0]["msg"].removeprefix("Value error, ").removeprefix("expected ")
        ) from fault
    resource = None
    if embedded is not None:
        again = body if node.flag("HTTPSampler.postBodyRaw") else None  # JMeter sends it with each of them
        resource = step.model_copy(
            update={
                "name": f"{name} (embedded)",
                "method": "GET",
                "headers": _headers(asked, base, keep_alive, again, None, False, None),
                "body": None if again is None else again.engine,
                "body_file": None,
                "body_parts": (),
                "expect": expectation(scope.assertions, follows, values, OF_EMBEDDED),
                "capture": {},
            }
        )
    return SamplerRequest(step, base, keep_alive, connect_ms, response_ms, node, scope, embedded, resource)


def _refuse_extras(asked: _Asked) -> None:
    node = asked.node
    for holder in (node, *asked.scope.defaults):
        if holder.flag("HTTPSampler.md5"):
            raise holder.refused("the body as an MD5 hash", "test its size or a text in it")
        if holder.value("HTTPSampler.proxyHost"):
            raise holder.refused("a proxy", "name the server itself")
        if holder.value("HTTPSampler.ipSource"):
            raise holder.refused("a source address", "leave it empty")
        holder.ignore(*MEANINGLESS)
        implementation = holder.value("HTTPSampler.implementation")
        if implementation not in ("", "HttpClient4", "HttpClient3.1"):  # the last is the first today
            asked.values.note(
                f"the implementation {implementation} is not followed: headers are those of HttpClient4"
            )


def _where(asked: _Asked) -> tuple[str, Text]:
    """Scheme, host and port, and the path. A whole URL in the path is taken apart."""
    node, values = asked.node, asked.values
    path = values.text(asked.raw("HTTPSampler.path"), node).joined
    start = path.parts[0].text if path.parts and not path.parts[0].dynamic else ""
    protocol = (asked.constant("HTTPSampler.protocol") or "http").lower()
    host, port = asked.constant("HTTPSampler.domain"), asked.constant("HTTPSampler.port")
    whole = re.match(r"(https?)://([^/?#]*)", start, re.IGNORECASE)
    if whole is not None:
        try:
            parts = urlsplit(whole.group(0))
            protocol, host, port = parts.scheme, parts.hostname or "", str(parts.port or "")
        except ValueError as fault:
            raise node.wrong(f"a URL in the path; {fault}") from fault
        path = Text((TextPart(start[whole.end() :]), *path.parts[1:]))
    if protocol not in PORTS:
        raise node.refused(f"the protocol {protocol}", "use http or https")
    if not host:
        raise node.wrong("a server name, here or in HTTP Request Defaults")
    if "${" in host:
        raise node.wrong(f"a server name, found '{host}', a variable without a value")
    if re.search(r"[\s/?#@\[\]]", host):
        raise node.wrong(f"a server name without a path, found '{host}'")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise node.wrong(f"a port from 1 to 65535, found '{port}'")
    number = int(port) if port else PORTS[protocol]
    shown = f"[{host}]" if ":" in host else host
    return f"{protocol}://{shown}:{number}", _escaped(path, node, values)


def _escaped(path: Text, node: JmxNode, values: KnownValues) -> Text:
    """Blanks and what is not ASCII as %XX; what is escaped stays. What java.net.URI refuses is wrong."""
    for part in path.parts:
        unknown = next((name for name in values.undefined if "${" + name + "}" in part.text), None)
        if not part.dynamic and unknown is not None:
            raise node.refused(
                f"the variable ${{{unknown}}} has no value and stands in the path (JMeter fails with a "
                "URISyntaxException)",
                "define it in the test plan, in a CSV data set or by an extractor of an earlier sampler",
            )
        if not part.dynamic and ILLEGAL.search(part.text):
            raise node.wrong(f"%XX for characters that no URL may hold, found '{part.text.strip()}'")
    first = path.parts[0].text if path.parts else ""
    if not path.parts or path.parts[0].dynamic or not first.startswith("/"):
        path = Text.of("/") + path
    parts = [
        part if part.dynamic else TextPart(quote(part.text.partition("#")[0], safe="/?&=%:;,+@!$'()*~[]-._"))
        for part in path.parts
    ]
    return Text(tuple(parts))


def _parts(asked: _Asked, method: str) -> Multipart | None:
    """Where the sampler sends a form with parts: it is told to, or a file has a parameter name."""
    node = asked.node
    files = node.members("HTTPFileArgs.files", "HTTPsampler.Files")
    named = any(file.value("File.paramname") for file in files)
    asks = node.flag("HTTPSampler.DO_MULTIPART_POST")
    if method not in WITH_BODY or not (asks or named):
        return None
    if node.flag("HTTPSampler.postBodyRaw"):
        raise node.refused("a raw body with multipart/form-data", "untick multipart, or use parameters")
    if not all(file.value("File.paramname") for file in files):
        raise node.refused("a file without a parameter name among parts", "give it one")
    arguments = node.members("Arguments.arguments", "HTTPsampler.Arguments")
    for default in asked.scope.defaults:
        arguments = default.members("Arguments.arguments", "HTTPsampler.Arguments") + arguments
    encoding = _encoding(asked)
    if encoding != "UTF-8":
        raise node.refused(f"the encoding {encoding} of parts", "use UTF-8")
    return multipart(node, arguments, files, asked.values)


def _content(asked: _Asked, method: str, shared: Shared) -> tuple[Text | None, str | None, Text, bool]:
    """Body, file of the body, query, and whether the body is a form."""
    node, values = asked.node, asked.values
    arguments = node.members("Arguments.arguments", "HTTPsampler.Arguments")
    for default in asked.scope.defaults:
        arguments = default.members("Arguments.arguments", "HTTPsampler.Arguments") + arguments
    files = node.members("HTTPFileArgs.files", "HTTPsampler.Files")
    raw = node.flag("HTTPSampler.postBodyRaw")
    encoding = _encoding(asked)
    if files:
        return None, _file(node, files, method, values, shared), Text(), False
    if raw:
        if method not in (*WITH_BODY, "DELETE", "GET"):
            raise node.refused(f"a body with {method}", "use parameters, or a method that has a body")
        text = Text()
        for argument in arguments:
            value = values.text(argument.value("Argument.value"), argument)
            text = text + (value.encoded() if argument.flag("HTTPArgument.always_encode") else value)
            argument.ignore("Argument.metadata", "HTTPArgument.always_encode", "HTTPArgument.use_equals",
                            "HTTPArgument.content_type", "Argument.name")  # fmt: skip
        if encoding != "UTF-8" and any(part.dynamic or not part.text.isascii() for part in text.parts):
            raise node.refused(f"a body in {encoding} that is not plain ASCII", "use UTF-8")
        return text, None, Text(), False
    pairs = [_pair(argument, values, encoding) for argument in arguments]
    body, query = (Text.of("&").join(pair[place] for pair in pairs if pair is not None) for place in (0, 1))
    if method in WITH_BODY:
        return body, None, Text(), True
    for part in query.parts:
        if not part.dynamic and re.search(r"\s", part.text):
            raise node.refused(
                f"a blank in a parameter that is not encoded, '{part.text}' (JMeter fails with a "
                "URISyntaxException)",
                "tick 'URL Encode?', or write %20",
            )
    if method == "DELETE":  # JMeter sends its parameters in both places
        return body, None, query, True
    if pairs and method not in QUERY_ONLY:
        values.note(f"{node.element}: its parameters are not sent with {method}, as in JMeter")
        return None, None, Text(), False
    return None, None, query, False


def _pair(argument: JmxNode, values: KnownValues, encoding: str) -> tuple[Text, Text] | None:
    """As it stands in a form's body and in a query; None for one without a name, which JMeter leaves out.
    What is encoded already is decoded and encoded again in a body, and left as it is in a query.
    """
    encode = argument.flag("HTTPArgument.always_encode")
    equals = argument.flag("HTTPArgument.use_equals", True)
    sign = argument.value("Argument.metadata", "=" if equals else "")
    argument.ignore("Argument.desc", "HTTPArgument.content_type")
    name = values.text(argument.value("Argument.name"), argument)
    value = values.text(argument.value("Argument.value"), argument)
    argument.finish()
    if name.constant is not None and not name.constant.strip():
        return None
    if encoding != "UTF-8" and any(part.dynamic for part in (*name.parts, *value.parts)):
        raise argument.refused(f"a value that changes, in {encoding}", "use UTF-8")
    body = name.encoded(encoding, not encode) + Text.of("=") + value.encoded(encoding, not encode)
    query = (
        name.encoded(encoding) + Text.of(sign) + value.encoded(encoding)
        if encode
        else name + Text.of(sign) + value
    )
    return body, query


def _encoding(asked: _Asked) -> str:
    """Of the content, in capitals. Raises Refused for one that is not known."""
    name = asked.constant("HTTPSampler.contentEncoding").upper() or "UTF-8"
    try:
        codecs.lookup(name)
    except LookupError as fault:
        raise asked.node.refused(f"the encoding {name}", "use UTF-8") from fault
    return name


def _file(node: JmxNode, files: list[JmxNode], method: str, values: KnownValues, shared: Shared) -> str:
    """One file without a parameter name is the body."""
    if len(files) != 1 or method not in WITH_BODY:
        raise node.refused(
            f"{len(files)} files with {method}", "send one file as the body of a POST, PUT or PATCH"
        )
    file = files[0]
    if file.value("File.paramname"):
        raise node.refused(
            "a file as a part of a form", "send the file alone as the body, without a parameter name"
        )
    path = shared.folder / values.constant(file.value("File.path"), file)
    if not path.is_file():
        raise file.wrong(f"a file that can be read; {path} is not there")
    kind = values.constant(file.value("File.mimetype"), file)
    if kind:
        node.attributes["content-type"] = kind
    file.finish()
    return str(path.absolute())


def _headers(
    asked: _Asked,
    base: str,
    keep_alive: bool,
    body: Text | None,
    body_file: str | None,
    form: bool,
    parts: Multipart | None,
) -> Mapping[str, str]:
    """In the order in which HttpClient4 writes them."""
    found: dict[str, str] = {"Connection": "keep-alive" if keep_alive else "close"}
    host = urlsplit(base)
    for name, value in asked.scope.headers.entries:
        text = value.engine
        if name.lower() == "connection":
            found.pop("Connection", None)
            asked.values.note(
                f"a header {name} of the plan is sent alone; JMeter sends its own Connection before it"
            )
        elif name.lower() == "content-length":
            asked.values.note(
                "a header Content-Length of the plan is not sent, as in JMeter, which writes its own"
            )
            continue
        elif name.lower() == "host" and value.constant is not None:
            text = _host(value.constant, host.scheme, host.port)
        found[name] = text
    has = {name.lower() for name in found}
    kind = asked.node.attributes.get("content-type", "")
    if "content-type" not in has and kind:
        found["Content-Type"] = kind
    if body is not None and body.constant is not None:
        found["Content-Length"] = str(len(body.constant.encode()))
    elif body_file is not None:
        found["Content-Length"] = str(Path(body_file).stat().st_size)
    if parts is not None:
        if "content-type" in has:
            raise asked.node.refused("a header Content-Type with parts", "leave the header out")
        if parts.length is not None:
            found["Content-Length"] = str(parts.length)
        found["Content-Type"] = parts.content_type
    if "content-type" not in has and body is not None:
        found["Content-Type"] = f"{FORM if form else RAW}; charset={_encoding(asked)}"
    if "host" not in has:
        found["Host"] = _host(host.netloc.rpartition(":")[0], host.scheme, host.port)
    if "user-agent" not in has:
        found["User-Agent"] = AGENT
    return found


def _host(name: str, scheme: str, port: int | None) -> str:
    """With the port of the URL, unless the header has its own or that is the usual one."""
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
