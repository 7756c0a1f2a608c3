"""Calibrates the engine against the reference server (`prony-engine serve`). Must not know any trial."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Literal

from prony.errors import EnvironmentFault
from prony.evidence.host import CpuPartition
from prony.evidence.trial import Calibration
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun, find_engine
from prony.plan import given
from prony.plan.load import ClosedLoad, Connections
from prony.plan.response import Capture
from prony.plan.workload import Expectation, Step, Workload

WARM_S = 0.5
MEASURED_S = 1.5
MOST_CONNECTIONS = 1024
"""The ceiling depends on the number of connections, but hardly from here on; the reference server needs a
descriptor for each.
"""


def calibrate(
    partition: CpuPartition,
    workload: Workload,
    users: int,
    body_bytes: int,
    driver: Literal["auto", "io_uring", "epoll"] = "auto",
    pipeline: int = 1,
) -> Calibration:
    """The rate that the engine reaches with this request and a response of this length, on these CPUs.

    The reference server runs on the server's CPUs, so the ceiling is that of the pair: what the engine could
    have measured with a server as cheap as the reference server. Raises EnvironmentFault.
    """
    server = _start(partition, body_bytes)
    try:
        url = f"http://{_address(server)}"
        run = EngineRun(
            EngineLoad(
                url=url,
                workload=_for_reference(workload),
                load=ClosedLoad(users=min(users, MOST_CONNECTIONS)),
                connections=Connections(pipeline=pipeline),
                cpus=partition.client,
                driver=driver,
                after_s=WARM_S + MEASURED_S + 3,
            )
        )
        try:
            return _measure(run, body_bytes)
        finally:
            run.close()
    finally:
        _stop(server)


def _for_reference(workload: Workload) -> Workload:
    """The same requests with expectations that the reference server meets: status 200 only, and a default for
    every captured value, also those of the preparation. No think times: the ceiling is wanted.
    """

    def stand_in(capture: Capture) -> str:
        return "[0]" if capture.as_json else capture.default or "0"

    def step(step: Step) -> Step:
        captures = {
            name: capture.model_copy(update={"default": stand_in(capture), "optional": False})
            for name, capture in step.capture.items()
        }
        return step.model_copy(update={"expect": Expectation(status=(200,)), "capture": captures})

    prepared = {name: stand_in(one) for step in workload.prepare for name, one in step.capture.items()}
    return given.knowing(workload, prepared).with_steps(step, pausing=False)


def _measure(run: EngineRun, body_bytes: int) -> Calibration:
    while run.ready is None and not run.finished:
        run.next_event(5.0)
    run.next_event(WARM_S) if WARM_S else None
    run.open_window(MEASURED_S)
    while not run.finished:
        event = run.next_event(10.0)
        if event is None or event.get("event") == "window_closed":
            break
    run.stop()
    window = run.report().window
    if window is None or window.completed == 0:
        raise EnvironmentFault("calibration against the reference server failed: no request completed")
    cpu = max((t.cpu_s / t.wall_s for t in window.threads if t.cpu_s is not None and t.wall_s), default=None)
    return Calibration(
        ceiling_per_s=window.completed / window.duration_s,
        body_bytes=body_bytes,
        duration_s=window.duration_s,
        client_cpu=cpu,
    )


def _start(partition: CpuPartition, body_bytes: int) -> subprocess.Popen[str]:
    cpus = partition.server if not partition.shared else ()
    command = [
        str(find_engine()),
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--stdin-guard",
        "--body-bytes",
        str(body_bytes),
    ]
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
            "the reference server did not start; run `prony-engine serve` to see why"
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
