"""h2load's URIs: from the command line, a file or a timing script."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from prony.errors import UsageError
from prony.plan.target import Url, parse_url
from prony_frontends.base import Refused
from prony_frontends.h2load.arguments import TOOL, H2loadArguments, WrongUsage

MOST_LINES = 1000
"""Limit for a timing script: each line becomes a group of users."""


@dataclass(frozen=True, slots=True)
class Requested:
    """Target and requests, in order."""

    target: Url
    authority: str
    """Authority of the first URI, or of -B."""
    paths: tuple[str, ...]
    at_ms: tuple[float, ...] = ()
    """Timing script: due times after the client's start, in ms."""


def requested(args: H2loadArguments) -> Requested:
    """Raises WrongUsage for input that h2load refuses, Refused for unsupported input."""
    at_ms: tuple[float, ...] = ()
    if args.timing_file is not None:
        at_ms, uris = _timed(_lines(args.timing_file))
    elif args.input_file is not None:
        uris = tuple(_lines(args.input_file))
    else:
        uris = args.uris
    if not uris:
        raise WrongUsage("no URI or input file given")
    if at_ms and args.requests is not None:
        uris, at_ms = uris[: args.requests], at_ms[: args.requests]
    first = uris[0]
    target, authority = _base(args, first)
    return Requested(target, authority, tuple(_path(uri) for uri in uris), at_ms)


def _lines(name: str) -> list[str]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise WrongUsage(f"cannot read input file: {name}") from None
    return text.splitlines()


def _timed(lines: Sequence[str]) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Times and URIs. Raises WrongUsage that names the line."""
    at_ms: list[float] = []
    uris: list[str] = []
    for number, line in enumerate(lines, 1):
        time, tab, uri = line.partition("\t")
        if not tab:
            raise WrongUsage(f"Invalid line format detected, no tab character at line {number}. \n\t{line}")
        try:
            value = float(time)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise WrongUsage(f"Time value error at line {number}. \n\tvalue = {time}")
        at_ms.append(value)
        uris.append(uri)
    if len(uris) > MOST_LINES:
        raise Refused(
            "--timing-script-file", TOOL, None, f"{len(uris)} lines", f"use at most {MOST_LINES}", "limit"
        )
    if at_ms != sorted(at_ms):
        raise Refused("--timing-script-file", TOOL, None, "decreasing times", "sort the lines by time")
    return tuple(at_ms), tuple(uris)


def _base(args: H2loadArguments, first: str) -> tuple[Url, str]:
    """The address for connections, and the authority."""
    given = first if args.base is None or args.base.startswith("unix:") else args.base
    what = "invalid URI: " if given == first else "--base-uri: invalid base URI: "
    if "://" not in given:
        raise WrongUsage(f"{what}{given}")
    try:
        named = parse_url(given).target
    except UsageError as fault:
        raise WrongUsage(f"{what}{given}") from fault
    authority = urlsplit(given).netloc.rpartition("@")[2]
    if args.base is not None and args.base.startswith("unix:"):
        if named.https:
            raise Refused("-B", TOOL, None, "https over a Unix socket", "use http, or a port", "conflict")
        return parse_url(args.base).target, authority
    if args.connect_to is None:
        return named, authority
    host, port = _connect_to(args.connect_to)
    return named.model_copy(update={"addresses": (f"{host}:{port or named.port}",)}), authority


def _connect_to(text: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or "/" in text:
        raise WrongUsage(f"--connect-to: Invalid value {text}")
    return (f"[{host}]" if ":" in host else host), port


def _path(uri: str) -> str:
    """The path; scheme and host are ignored in all URIs but the first."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise WrongUsage(f"invalid URI: {uri}") from None
    path = parts.path or ("/" if parts.netloc else "")
    if not path.startswith("/") or re.search(r"[^!-~]", uri):
        raise WrongUsage(f"invalid URI: {uri}")
    return path + (f"?{parts.query}" if parts.query else "")
