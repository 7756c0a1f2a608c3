"""Calibrates the engine against the reference server (`prony-engine serve`)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prony.errors import EnvironmentFault
from prony.evidence.base import Record
from prony.evidence.trial import Calibration
from prony.host.affinity import granted_cpus, pin_process
from prony.load.base import Engine, StartEngine
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun, find_engine
from prony.plan import captured_values
from prony.plan.load import ClosedLoad, Connections
from prony.plan.response import Capture, Expectation
from prony.plan.step import Step, requests, uncalled
from prony.plan.target import TlsOptions
from prony.plan.workload import Workload

WARM_S = 0.5
MEASURED_S = 1.5
MOST_CONNECTIONS = 1024
"""Most connections of a calibration: the ceiling hardly changes beyond, and each needs a descriptor."""
LIKE_BYTES = 64
"""Difference of response lengths (or a quarter) within which they cost the client the same."""


class ReferenceLoad(Record):
    """The properties of a load that decide the client's cost per request."""

    workload: Workload
    users: int
    connections: Connections = Connections()
    body_bytes: int
    tls: bool = False
    driver: Literal["auto", "io_uring", "epoll"] = "auto"
    client_cpus: tuple[int, ...]
    server_cpus: tuple[int, ...] = ()
    """CPUs of the measured server; empty: the kernel's choice."""
    closes_after: int | None = None

    def like(self, other: ReferenceLoad) -> bool:
        near = abs(self.body_bytes - other.body_bytes) <= max(LIKE_BYTES, self.body_bytes // 4)
        return near and self == other.model_copy(update={"body_bytes": self.body_bytes})


@dataclass(frozen=True, slots=True)
class Certificate:
    ca: Path
    cert: Path
    key: Path


StartReference = Callable[[Sequence[str], tuple[int, ...], Certificate | None], AbstractContextManager[str]]


def calibrate(
    load: ReferenceLoad,
    certificate: Certificate | None = None,
    times: int = 1,
    *,
    start: StartEngine = EngineRun,
    server: StartReference | None = None,
) -> Calibration:
    """The engine's rate and CPU under this load over `times` MEASURED_S. TLS needs a `certificate`. `start`,
    `server`: on other hosts. Raises EnvironmentFault.
    """
    length_s = times * MEASURED_S
    options = ["--body-bytes", str(load.body_bytes)]
    if load.closes_after is not None:
        options += ["--close-after", str(load.closes_after)]
    options.append("--http2" if load.connections.http_version == "2" else "--bare")
    with (server or reference_server)(options, load.server_cpus, certificate) as url:
        run = start(
            EngineLoad(
                url=url,
                tls=TlsOptions() if certificate is None else TlsOptions(ca=certificate.ca),
                workload=_for_reference(load.workload),
                load=ClosedLoad(users=load.users),
                connections=load.connections,
                cpus=load.client_cpus,
                realtime=bool(load.server_cpus) and not set(load.server_cpus) & set(load.client_cpus),
                driver=load.driver,
                after_s=WARM_S + length_s + 3,
            )
        )
        try:
            return _measure(run, load.body_bytes, length_s)
        finally:
            run.close()


@contextmanager
def reference_server(
    options: Sequence[str],
    cpus: tuple[int, ...] = (),
    certificate: Certificate | None = None,
    host: str = "127.0.0.1",
) -> Iterator[str]:
    """The URL of a reference server: a thread per CPU, or one unpinned. Raises EnvironmentFault."""
    server = _start([*options, *_tls(certificate)], cpus, host)
    try:
        address = _address(server)
        if not cpus:
            pin_process(server.pid, granted_cpus())  # else it has the laboratory's: the client's
        yield f"{'http' if certificate is None else 'https'}://{address}"
    finally:
        _stop(server)


def _for_reference(workload: Workload) -> Workload:
    """The same requests to a single server: status 200, defaults for captures, no pauses, no calls."""

    def stand_in(capture: Capture) -> str:
        return "[0]" if capture.as_json else capture.default or "0"

    def step(step: Step) -> Step:
        captures = {
            name: capture.model_copy(update={"default": stand_in(capture), "optional": False})
            for name, capture in step.capture.items()
        }
        same = {"server": None, "header_lines": None, "set_cookies": None, "ends_run_on_error": False}
        return step.model_copy(update={**same, "expect": Expectation(status=(200,)), "capture": captures})

    prepared = dict.fromkeys(captured_values.captured(workload.prepare), "0")
    for request in requests(workload.prepare):
        prepared |= {name: stand_in(capture) for name, capture in request.capture.items()}
    quiet = captured_values.knowing(workload, prepared).with_steps(step, pausing=False)
    return quiet.model_copy(
        update={
            "steps": tuple(uncalled(entry, "0") for entry in quiet.steps),
            "scenarios": tuple(
                walk.model_copy(update={"steps": tuple(uncalled(entry, "0") for entry in walk.steps)})
                for walk in quiet.scenarios
            ),
        }
    )


def _measure(run: Engine, body_bytes: int, measured_s: float) -> Calibration:
    while run.ready is None and not run.finished:
        run.next_event(5.0)
    run.next_event(WARM_S) if WARM_S else None
    run.open_window(measured_s)
    while not run.finished:
        event = run.next_event(10.0)
        if event is None or event.get("event") == "window_closed":
            break
    run.stop()
    window = run.report().window
    if window is None or window.completed == 0:
        raise EnvironmentFault("calibration against the reference server failed: no request completed")
    return Calibration(
        ceiling_per_s=window.completed / window.duration_s,
        body_bytes=body_bytes,
        duration_s=window.duration_s,
        client_cpu=window.busiest_thread_share,
    )


def _tls(certificate: Certificate | None) -> list[str]:
    if certificate is None:
        return []
    return ["--tls", "--cert", str(certificate.cert), "--key", str(certificate.key)]


def _start(options: Sequence[str], cpus: tuple[int, ...], host: str) -> subprocess.Popen[str]:
    command = [str(find_engine()), "serve", "--listen", f"{host}:0", "--stdin-guard", *options]
    if cpus:
        command += ["--cpus", ",".join(map(str, cpus))]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def _address(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    line = server.stdout.readline()
    try:
        return str(json.loads(line)["address"])
    except (ValueError, KeyError) as fault:
        raise EnvironmentFault(
            "the reference server did not start; run `prony-engine serve` for the reason"
        ) from fault


def _stop(server: subprocess.Popen[str]) -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.close()
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        os.kill(server.pid, 9)
        server.wait()
    server.stdout.close()
