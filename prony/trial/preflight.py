"""The preflight: one request per step before the load. Is the server ready, and what does a right response
look like there?
"""

from __future__ import annotations

import base64
import hashlib
import json
import mmap
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit, urlunsplit

from prony.errors import UsageError
from prony.evidence.server import Probe
from prony.plan.step import Step
from prony.plan.trial import TrialPlan
from prony.plan.workload import Workload
from prony.server.address import Address
from prony.server.probe import ProbeResponse, http_probe
from prony.trial.rendering import Values

PROBE_TIMEOUT_S = 2.0
REDIRECTS = (301, 302, 303, 307, 308)


Probing = Callable[[Address, Workload, Mapping[str, str] | None], tuple[Probe, ...] | None]
"""Sends every step once: `probe_workload`, here or on another host."""


@dataclass(slots=True)
class Preflight:
    """What a server answers to each step before the load, asked as often as it takes."""

    plan: TrialPlan
    address: Address | None = None
    """Where to ask; None: not known yet, or it takes no single requests (a Unix socket)."""
    probes: tuple[Probe, ...] = ()
    """The latest responses, by step."""
    probing: Probing | None = None
    """Who sends the requests, where it is not this process."""

    @property
    def possible(self) -> bool:
        """Whether the plan allows it, and there is a request to send."""
        leads = any(walk.leading for walk in self.plan.workload.walks)
        return self.plan.preflight and self.address is not None and leads

    def ask(self, known: Mapping[str, str] | None = None) -> Probe | None:
        """Every step once: the first wrong response, else the last; None before it answers at all."""
        assert self.address is not None
        probes = (self.probing or probe_workload)(self.address, self.plan.workload, known)
        if not probes:
            return None
        self.probes = probes
        return next((probe for probe in probes if not probe.meets_expectation), probes[-1])

    def __call__(self) -> Probe | None:
        """The same, as a server that is starting is asked."""
        return self.ask()

    def here(self) -> Preflight:
        """One that sends its requests itself, to be used on another host."""
        return Preflight(self.plan, self.address)

    @property
    def wrong(self) -> str | None:
        """What is wrong with the responses."""
        return next((probe.why_not for probe in self.probes if not probe.meets_expectation), None)

    @property
    def wrong_request(self) -> Step | None:
        """The step that was answered so."""
        if self.wrong is None:
            return None
        steps = [step for walk in self.plan.workload.walks for step in walk.leading]
        return next((step for step in steps if step.name == self.probes[-1].step), steps[0])


def probe_workload(
    address: Address, workload: Workload, known: Mapping[str, str] | None = None
) -> tuple[Probe, ...] | None:
    """Every step of every scenario up to its first block once, in order, until the first wrong response;
    empty when every scenario begins with a block or has variables, None when the server does not answer yet.
    `known` are the values that a preparation has captured. Raises UsageError for a placeholder or file that
    is not there.
    """
    probes: list[Probe] = []
    for scenario in workload.walks:
        values = Values(workload.feeders, known)
        for step in scenario.leading:
            try:
                probe = _probe(address if step.server is None else _at(step.server), step, values)
            except OSError:
                return None
            probes.append(probe)
            if not probe.meets_expectation:
                return tuple(probes)
    return tuple(probes)


def _at(server: str) -> Address:
    parts = urlsplit(server)
    tls = parts.scheme == "https"
    return Address(parts.hostname or "", parts.port or (443 if tls else 80), tls)


def _asked(address: Address, step: Step, values: Values) -> ProbeResponse:
    """The response to a step, after the redirects that it follows: as the engine does, without cookies."""
    method, path = step.method, values.render(step.path, path=True)
    headers, body = rendered_headers(step, values), rendered_body(step, values)
    own = address.url
    hops = 0
    while True:
        response = http_probe(
            address.host, address.port, method, path, headers, body, PROBE_TIMEOUT_S, tls=address.tls
        )
        location = response.headers.get("location")
        if response.status not in REDIRECTS or location is None or hops == step.follow_redirects:
            return response
        there = urlsplit(urljoin(own + path, location))
        if f"{there.scheme}://{there.netloc}" != own:
            return response
        hops += 1
        path = urlunsplit(("", "", there.path or "/", there.query, ""))
        if (response.status == 303 and method != "HEAD") or (
            response.status in (301, 302) and method == "POST"
        ):
            method, body = "GET", None
            headers = {
                name: text for name, text in headers.items() if not name.lower().startswith("content-")
            }


def _probe(address: Address, step: Step, values: Values) -> Probe:
    begun_s = time.monotonic()
    response = _asked(address, step, values)
    elapsed_ms = (time.monotonic() - begun_s) * 1000
    headers = {name.lower(): value for name, value in response.headers.items()}
    if step.expect is not None:
        why_not = step.expect.why_not(response.status, headers, response.body)
    else:
        why_not = None if response.status < 400 else f"status {response.status}"
    if why_not is None:
        why_not = values.take(step.capture, response.status, headers, response.body)
    return Probe(
        step=step.name,
        status=response.status,
        body_bytes=len(response.body),
        content_type=headers.get("content-type"),
        meets_expectation=why_not is None,
        why_not=why_not,
        keeps_alive=response.keeps_alive,
        body_digest=body_digest(response.body, headers.get("content-type")),
        via=headers.get("via"),
        server_header=headers.get("server"),
        elapsed_ms=elapsed_ms,
    )


def body_digest(body: bytes, content_type: str | None) -> str:
    """A short SHA-256 of a response's body. Of JSON whatever its spaces and the order of its keys."""
    if content_type is not None and "json" in content_type.lower():
        with suppress(ValueError):
            body = json.dumps(json.loads(body), sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(body).hexdigest()[:16]


def rendered_headers(step: Step, values: Values) -> dict[str, str]:
    """The step's headers with their placeholders filled in, Authorization among them."""
    headers = {name: values.render(value) for name, value in step.headers.items()}
    if step.auth is not None and step.auth.basic is not None:
        pair = f"{step.auth.basic.user}:{step.auth.basic.password}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif step.auth is not None and step.auth.bearer is not None:
        headers["Authorization"] = f"Bearer {values.render(step.auth.bearer)}"
    return headers


def rendered_body(step: Step, values: Values) -> bytes | memoryview | None:
    """What the step sends; a file is mapped, not read. Raises UsageError when it cannot be."""
    if step.body_file is not None:
        file = Path(step.body_file)
        try:
            with file.open("rb") as opened:
                if file.stat().st_size == 0:
                    return b""
                # Not read into memory: the file may be as large as the engine streams.
                return memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as fault:
            raise UsageError(
                f"step '{step.name}': the body's file {file} cannot be read: {fault.strerror}"
            ) from fault
    return None if step.body is None else values.render(step.body).encode()
