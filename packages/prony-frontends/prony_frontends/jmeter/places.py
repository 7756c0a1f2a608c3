"""Target of a sampler's request: scheme, host, port, and the path as encoded by JMeter's client."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes, urlsplit

from prony.errors import UsageError
from prony_frontends.jmeter.functions import KnownValues, Text, TextPart
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.sampler_values import SamplerValues
from prony_frontends.jmeter.uris import fault, may_match

PORTS = {"http": 80, "https": 443}
IN_SEGMENTS = ";:@&=+$,-._~*!'()"
"""Characters besides letters and digits that HttpClient keeps when it rewrites a path."""
IN_URLS = "/?&=%:;,+@!$'()*~[]-._"
NOT_IN_NAMES = re.compile(r"[\s/?#@\[\]]")
PLACE = re.compile("\0(\\d+)\0")


class NotSent(Exception):
    """JMeter reports an error instead of a request; `str()` is its message."""

    def __init__(self, url: Text, refusal: UsageError, parameters: Text | None = None) -> None:
        """`refusal`: the error for the plan's author."""
        self.url, self.parameters, self.refusal = url, parameters or Text(), refusal
        super().__init__(fault((url + self.parameters).engine.replace("$${", "${")))


@dataclass(frozen=True, slots=True)
class Place:
    """Target of a request."""

    base: str
    """Scheme, host and port."""
    path: Text
    whole: bool
    """Whether the path was a whole URL, which JMeter sends without parameters."""
    url: Text
    """The URL as JMeter prints it, without parameters."""


def place(sampler: SamplerValues) -> Place:
    """The sampler's target. Raises Refused, UsageError and NotSent."""
    node, values = sampler.node, sampler.values
    path = values.text(sampler.raw("HTTPSampler.path"), node)
    start = path.parts[0].text if path.parts and not path.parts[0].dynamic else ""
    whole = re.match(r"(https?)://([^/?#]*)", start, re.IGNORECASE)
    if whole is not None:
        try:
            parts = urlsplit(whole.group(0))
            scheme, host, port = parts.scheme, parts.hostname or "", str(parts.port or "")
        except ValueError as fault:
            raise node.wrong(f"a URL in the path; {fault}") from fault
        path = Text((TextPart(start[whole.end() :]), *path.parts[1:]))
        for holder in (node, *sampler.scope.defaults):
            holder.ignore("HTTPSampler.protocol", "HTTPSampler.domain", "HTTPSampler.port")
    else:
        scheme, host, port, before = _server(sampler)
        path = Text.of(before) + (path if _begins(path) else Text.of("/") + path)
    if scheme not in PORTS:
        raise node.refused(f"the protocol {scheme}", "use http or https")
    if not host:
        raise node.wrong("a server name, here or in HTTP Request Defaults")
    if "${" in host:
        refusal = node.wrong(f"a server name, found '{host}', an undefined variable")
        raise NotSent(_shown(scheme, host, port, path), refusal)
    if NOT_IN_NAMES.search(host):
        raise node.wrong(f"a server name, found '{host}'")
    shown = f"[{host}]" if ":" in host else host
    base = f"{scheme}://{shown}:{_port(port, scheme, node, values)}"
    return Place(base, _written(path, values), whole is not None, _shown(scheme, shown, port, path))


def check_sent(url: Text, parameters: Text, node: JmxNode, values: KnownValues) -> None:
    """Raises NotSent for a URL whose constant parts make no URI."""
    constants = "".join("x" if part.dynamic else part.text for part in (url + parameters).parts)
    why = fault(constants)
    if why is None:
        return
    unknown = next((name for name in values.undefined if "${" + name + "}" in constants), None)
    if unknown is not None:
        refusal: UsageError = node.refused(
            f"the variable ${{{unknown}}} in the path is undefined (JMeter fails with a URISyntaxException)",
            "define it in the test plan, in a CSV data set or by an extractor of an earlier sampler",
            "undefined",
        )
    else:
        refusal = node.wrong(f"%XX for characters that are invalid in URLs ({why})")
    raise NotSent(url, refusal, parameters)


def _shown(scheme: str, host: str, port: str, path: Text) -> Text:
    """The URL as JMeter prints it, which escapes spaces of the path alone."""
    at = f":{port}" if _is_set(port, scheme) else ""
    parts = (part if part.dynamic else TextPart(part.text.replace(" ", "%20")) for part in path.parts)
    return (Text.of(f"{scheme}://{host}{at}") + Text(tuple(parts))).joined


def _begins(path: Text) -> bool:
    return bool(path.parts) and not path.parts[0].dynamic and path.parts[0].text.startswith("/")


def _server(sampler: SamplerValues) -> tuple[str, str, str, str]:
    """Scheme, host, port, and a prefix of the path: a server name may contain more than a name."""
    node, values = sampler.node, sampler.values
    scheme = (sampler.constant("HTTPSampler.protocol") or "http").lower()
    if re.fullmatch("https?:/*", scheme):
        values.note(
            "protocol_name", f"'{scheme}' is no protocol name: JMeter 5.6.3 sends nothing, Prony does", node
        )
        scheme = scheme.rstrip(":/")
    given, port = sampler.constant("HTTPSampler.domain"), sampler.constant("HTTPSampler.port")
    named = re.match(r"(https?)://", given, re.IGNORECASE)
    host, slash, rest = (given[named.end() :] if named is not None else given).partition("/")
    inside = re.fullmatch(r"([^:\[\]]+):(\d{1,5})", host)
    if named is not None:
        scheme = named.group(1).lower()
    if inside is not None:
        host = inside.group(1)
        if _is_set(port, scheme) and port != inside.group(2):
            raise node.wrong(f"one port, found '{given}' and {port}")
        port = inside.group(2)
    before = (slash + rest).rstrip("/")
    if host != given and not given.startswith("["):
        values.note(
            "server_name",
            f"'{given}' is no server name: JMeter on Java 17 sends nothing, Prony sends to {host}{before}",
            node,
        )
    bare = re.fullmatch(r"\[([0-9A-Fa-f:.]+)\]", host)
    return scheme, host if bare is None else bare.group(1), port, before


def _is_set(port: str, scheme: str) -> bool:
    """Whether JMeter writes this port into the URL."""
    return port.isascii() and port.isdigit() and int(port) not in (0, PORTS.get(scheme))


def _port(port: str, scheme: str, node: JmxNode, values: KnownValues) -> int:
    """The port; the default for a non-number, as in JMeter."""
    if port and not re.fullmatch(r"[+-]?\d{1,9}", port):
        values.note("port", f"the port '{port}' is no number: {PORTS[scheme]} is used, as in JMeter", node)
    number = int(port) if re.fullmatch(r"[+-]?\d{1,9}", port) else 0
    if number > 65535:
        raise node.wrong(f"a port from 1 to 65535, found '{port}'")
    return number if number > 0 else PORTS[scheme]


def _written(path: Text, values: KnownValues) -> Text:
    """Escapes spaces and non-ASCII; keeps existing escapes; leaves out empty segments, of values too."""
    dynamic = [part for part in path.parts if part.dynamic]
    numbers = iter(range(len(dynamic)))
    text = "".join(f"\0{next(numbers)}\0" if part.dynamic else part.text for part in path.parts)
    text = text.partition("#")[0]
    if not text.startswith("/"):
        text = "/" + text
    target, mark, query = text.partition("?")
    written = _one_slash(target) + mark + query
    pieces = PLACE.split(quote(written, safe=IN_URLS + "\0"))
    parts: list[TextPart] = []
    in_query = closed = False
    for at, piece in enumerate(pieces):
        if at % 2 == 0:
            in_query |= "?" in piece
            parts.append(TextPart(piece.removeprefix("/") if closed else piece))
            continue
        part, follows = dynamic[int(piece)], pieces[at + 1].startswith("/")
        wrong = "^/|//|^$|/$" if follows else "^/|//"
        closed = False
        if not in_query and pieces[at - 1].endswith("/") and may_match(part, wrong, values):
            closed = follows
            part = TextPart(f"{part.text} | segments{' /' if closed else ''}", True)
        parts.append(part)
    return Text(tuple(part for part in parts if part.text))


def _one_slash(path: str) -> str:
    """Removes empty segments and rewrites the others, as HttpClient does."""
    *segments, last = path.split("/")[1:]
    if all(segments):
        return path

    def anew(segment: str) -> str:
        pieces = re.split("(\0\\d+\0)", segment)
        return "".join(
            piece if piece.startswith("\0") else quote(unquote_to_bytes(piece), safe=IN_SEGMENTS)
            for piece in pieces
        )

    return "/" + "/".join(anew(segment) for segment in (*filter(None, segments), last))
