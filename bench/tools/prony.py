"""Prony's engine, run directly with a plan and all default evidence."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Literal

from prony.errors import EnvironmentFault
from prony.evidence.engine import Counters, Window
from prony.judge.histogram import decode
from prony.load.engine import engine_version, find_engine
from prony_peers.base import Claim, Command, NotOffered, PeerLoad, last_line

PLAN_REFUSED = 2
"""The engine's exit code for an infeasible plan (docs/engine.md)."""
UNSTAMPED = "unstamped"
MAX_USERS = 4096
"""Open loop: maximum concurrent arrivals, so that a stall of some 100 ms blocks none."""


class Prony:
    """prony-engine with one driver. `evidence` beyond the default: `parts` (request time breakdown), `log` (a
    row per request in a file), or both with a plus; `UNSTAMPED`: without the kernel's receive time stamps,
    which are on by default.
    """

    install = "make setup"

    def __init__(self, driver: Literal["io_uring", "epoll"], evidence: str = "") -> None:
        self._driver = driver
        self._evidence = evidence
        self._folder = tempfile.TemporaryDirectory(prefix="prony-bench-log-") if "log" in evidence else None

    @property
    def name(self) -> str:
        return f"prony-{self._driver}{'+' if self._evidence else ''}{self._evidence}"

    def find(self) -> Path | None:
        try:
            return find_engine()
        except EnvironmentFault:
            return None

    def version(self, program: Path) -> str:  # noqa: ARG002 - the engine that find() names
        return engine_version()

    def command(self, program: Path, request: PeerLoad) -> Command:
        return Command((str(program), "run"), json.dumps(self.plan(request)) + "\n")

    def plan(self, request: PeerLoad) -> dict[str, Any]:
        """The engine's plan for this request (docs/engine.md)."""
        case = request.case
        target: dict[str, Any] = {"url": request.url.rstrip("/")}
        if case.tls:  # the other tools verify no certificate either
            target["tls"] = {"insecure": True, "resumption": False}
        total_ms = request.seconds * 1000
        users = case.connections * (case.streams or 1)
        load: dict[str, Any] = {"model": "closed", "users": users}
        if case.rate_per_s is not None:
            phase = {"duration_ms": total_ms, "from_per_s": case.rate_per_s, "to_per_s": case.rate_per_s}
            load = {"model": "open", "arrivals": "constant", "phases": [phase], "max_users": MAX_USERS}
            load["connections"] = case.connections
        step = {
            "method": "GET",
            "path": "/",
            "headers": [],
            "expect": {"status": [200], "body_equals": request.body},
        }
        over: dict[str, Any] = {}
        if case.streams is not None:
            over = {"http_version": "2", "http2": {"connections": case.connections}}
        extra: dict[str, Any] = {"parts": True} if "parts" in self._evidence else {}
        if UNSTAMPED in self._evidence:
            extra["receive_stamps"] = False
        if self._folder is not None:
            extra["log"] = str(Path(self._folder.name) / "requests.csv")
        return {
            "version": 1,
            "target": target,
            "driver": self._driver,
            "threads": {"cpus": [request.cpu], "pin": True},
            "load": load,
            "scenarios": [{"name": "bench", "steps": [step]}],
            "connection": {"reuse": "per_request" if case.per_request else "keep_alive"},
            "stop": {"after_ms": total_ms},
            "window": {
                "mode": "fixed",
                "warmup_ms": round(request.warm_s * 1000),
                "duration_ms": round((request.seconds - request.warm_s) * 1000),
            },
            "seed": request.seed,
            **over,
            **extra,
        }

    def claim(self, stdout: str, stderr: str, exit_code: int) -> Claim:
        events = [json.loads(line) for line in stdout.splitlines() if line.strip()]
        by_kind = {str(event.get("event")): event for event in events}
        if exit_code == PLAN_REFUSED:
            message = by_kind.get("error", {}).get("message") or last_line(stderr)
            raise NotOffered(f"not yet: {message}")
        if exit_code != 0 or "finished" not in by_kind:
            raise ValueError(last_line(stderr))
        finished = by_kind["finished"]
        totals = Counters.model_validate(finished["totals"])
        return Claim(
            requests=totals.completed,
            errors=totals.failed,
            abandoned=totals.abandoned,
            send_lag_p50_us=_send_lag_us(finished.get("window"), 50),
            send_lag_p99_us=_send_lag_us(finished.get("window"), 99),
        )


def _send_lag_us(window: dict[str, Any] | None, percentile: float) -> float | None:
    lag = Window.model_validate(window).send_lag if window else None
    value_ns = decode(lag).percentile_ns(percentile) if lag else None
    return None if value_ns is None else value_ns / 1000
