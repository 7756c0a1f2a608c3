"""Translates ab's command line into a load with byte-identical requests."""

from __future__ import annotations

import base64
import ipaddress
import re
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from prony import redaction
from prony.errors import UsageError
from prony.plan.load import ClosedLoad, Connections, WholeRun
from prony.plan.response import Expectation
from prony.plan.step import METHODS, Step
from prony.plan.target import TlsOptions, Url
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Workload
from prony_frontends.ab.arguments import TOOL, AbArguments
from prony_frontends.base import Note, Refused, Translated

AGENT = "ApacheBench/2.3"
LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+): (\S(?:.*\S)?)")
"""A line of -H in the usual form."""


def translated(args: AbArguments) -> Translated:
    """The load with the same requests, counts and limits. Raises UsageError for an invalid request."""
    target = args.target
    method = args.method or "GET"
    if args.proxy is not None and target.https:
        raise Refused("-X", TOOL, None, "https through a proxy", "use no proxy, or http", "conflict")
    if method not in METHODS:
        raise Refused("-m", TOOL, None, f"the method {method}", f"use {', '.join(METHODS)}")
    only: Any = args.tls_version
    trial = TrialPlan(
        workload=_workload(args, target, method),
        load=ClosedLoad(users=args.concurrency),
        measured=WholeRun(total_requests=args.requests, duration_s=args.limit_s),
        warm_up=fixed(0.0),
        connections=Connections(
            keep_alive=args.keep_alive, http_version="1.0", tls_sessions="none", tls_version=only
        ),
        request_timeout_ms=round(args.timeout_s * 1000),
        connect_timeout_ms=round(args.timeout_s * 1000),
        preflight=False,
        source_addresses=() if args.source is None else (args.source,),
    )
    reached = target.model_copy(
        update={
            "tls": TlsOptions(insecure=True, client_cert=args.certificate, client_key=args.certificate),
            "addresses": () if args.proxy is None else (_proxy(args.proxy),),
        }
    )
    return Translated(TOOL, reached, trial, f"ab {redaction.url(args.url)}", _notes(args))


def _notes(args: AbArguments) -> tuple[Note, ...]:
    if args.carry_on or args.verbosity < 1:
        return ()
    text = "a broken connection does not end the run at once; at its end it exits as ab would"
    return (Note("run_goes_on", text),)


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Headers in ab's order: its own, the lines of -H as they are given, and those that they may replace."""

    first: tuple[tuple[str, str], ...]
    given: tuple[str, ...]
    last: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, args: AbArguments, target: Url) -> RequestHead:
        """Raises Refused for lines that would end the head."""
        first: list[tuple[str, str]] = []
        if args.keep_alive:
            first.append(("Connection", "Keep-Alive"))
        if args.cookie is not None:
            first.append(("Cookie", args.cookie))
        for name, pair in args.authorizations:
            first.append((name, f"Basic {base64.b64encode(pair.encode()).decode()}"))
        if args.body is not None:
            first.append(("Content-length", str(args.body.stat().st_size)))
            first.append(("Content-type", args.content_type))
        for line in args.headers:
            if not line or re.search(r"[\r\n]", line):
                raise Refused("-H", TOOL, None, f"'{redaction.beginning(line)}'", "write 'Name: value'")
        defaults = (("Host", _host(target)), ("User-Agent", AGENT), ("Accept", "*/*"))
        replaced = {line.partition(":")[0].lower() for line in args.headers if ":" in line}
        last = tuple((name, value) for name, value in defaults if name.lower() not in replaced)
        return cls(tuple(first), tuple(args.headers), last)

    @property
    def lines(self) -> list[str]:
        """The whole head."""
        first, last = ([f"{name}: {value}" for name, value in pairs] for pairs in (self.first, self.last))
        return [*first, *self.given, *last]

    @property
    def of_step(self) -> dict[str, Any]:
        """Keys of a step; lines of -H as headers where these are sent alike."""
        pairs = [match.groups() for line in self.given if (match := LINE.fullmatch(line))]
        listed = [*self.first, *pairs, *self.last]
        names = [name.lower() for name, _ in listed]
        if len(pairs) == len(self.given) and len(set(names)) == len(names):
            return {"headers": {name: literal(value) for name, value in listed}}
        own = [*self.first, *self.last]
        if len({name for name, _ in own}) < len(own):
            raise Refused("-A", TOOL, None, "the same credentials header twice", "give it once", "conflict")
        return {
            "headers": {name: literal(value) for name, value in own},
            "header_lines": "".join(f"{literal(line)}\r\n" for line in self.given),
            "header_lines_at": len(self.first),
        }


def _host(target: Url) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    return host if target.port == (443 if target.https else 80) else f"{host}:{target.port}"


def _workload(args: AbArguments, target: Url, method: str) -> Workload:
    path = f"{target.url}{args.path}" if args.proxy is not None else args.path
    try:
        step = Step.model_validate(
            {
                "path": literal(path),
                "path_as": "verbatim" if re.search(r"[ \t]", path) else "plain",
                "method": method,
                **RequestHead.of(args, target).of_step,
                "body_file": None if args.body is None else str(args.body.absolute()),
                # With variable lengths only the status is checked.
                "expect": Expectation(status=tuple(range(200, 300))) if args.any_length else None,
            }
        )
        return Workload(name=TOOL, title=f"{method} {args.path}", steps=(step,))
    except ValidationError as fault:
        reason = str(fault.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(f"ab: the request cannot be sent: {reason}") from fault


def literal(text: str) -> str:
    """The text with placeholders escaped."""
    return text.replace("${", "$${")


def _proxy(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise UsageError(f"ab: -X is '{text}'; expected a host and a port: proxy.example:3128")
    return f"{host}:{int(port)}"


def server_name(target: Url) -> str | None:
    """The SNI name; None for an IP address."""
    try:
        ipaddress.ip_address(target.host)
    except ValueError:
        return target.host
    return None
