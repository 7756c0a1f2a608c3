"""The JSON that `--json` prints, as models: the names are a contract. Must not know how a value is obtained.

`schema` is raised when a key is renamed, removed or changes its meaning; new keys may appear at any time.
Units are in the names. A figure that was not measured, or that the number of samples does not support, is
null; so are all figures of an invalid trial.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from prony.report.out import Out
from prony.report.plan_schema import PlanOut
from prony.report.rejudged import RejudgedOut


class FindingOut(Out):
    """One check."""

    check: str
    status: Literal["valid", "suspect", "invalid", "unknown"]
    value: float | str | None = Field(
        description="what was measured, in the check's own unit; null when unknown"
    )
    limit: str = Field(description="the limit as it stood, in words")
    reason: str
    advice: str = Field(description="what to do; empty when there is nothing to do")


class TimesOut(Out):
    """The times of the window's requests, in ms."""

    min: float | None = None
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p999: float | None = None
    max: float | None = None


class ClientOut(Out):
    """The load generator over the window."""

    driver: str | None = Field(description="io_uring or epoll")
    cpu_us_per_request: float | None
    cpu_busy: float | None = Field(description="the busiest thread's CPU time ÷ wall time, 0 … 1")


class SessionsOut(Out):
    """Users of an open load who walk a scenario, over the window."""

    begun: int = Field(description="arrivals that found a place")
    completed: int = Field(description="those of them who came to the end of the scenario")
    blocked: int | None = Field(description="arrivals that found no place")
    time_ms: TimesOut = Field(description="of the completed, from arrival to the end of the last answer")


class TlsOut(Out):
    """TLS over the whole run, warm-up included."""

    handshakes: int | None
    resumptions: int | None
    handshakes_per_request: float | None


class StepOut(Out):
    """One step of a scenario over the window."""

    scenario: str
    name: str
    requests: int = Field(description="whole answers within the window, whatever their status")
    failed: int
    mean_ms: float | None = Field(description="of the service time, as the percentiles")
    p50_ms: float | None
    p99_ms: float | None


class PartOut(Out):
    """One part of the time of requests, or of opening connections, over the window."""

    name: Literal["connect", "tls", "send", "wait", "receive"]
    samples: int
    mean_ms: float | None
    p50_ms: float | None
    p99_ms: float | None


class Measured(Out):
    """What one run of the load gave."""

    verdict: Literal["valid", "suspect", "invalid", "unknown"]
    bound_by: str = Field(description="what bound the throughput")
    findings: list[FindingOut]
    requests: int | None = Field(description="whole answers within the window, whatever their status")
    errors: dict[str, int] = Field(
        description="failed requests of the window by kind; empty when there were none"
    )
    status_codes: dict[str, int] = Field(description="answers of the window by HTTP status")
    throughput_per_s: float | None = Field(description="right answers per second; null when invalid")
    service_time_ms: TimesOut = Field(description="from the actual send to the end of the answer")
    latency_ms: TimesOut | None = Field(
        default=None, description="open loop: from the moment a request was due; null for a closed loop"
    )
    sessions: SessionsOut | None = Field(
        default=None, description="null unless users of an open load walk a scenario"
    )
    tls: TlsOut | None = Field(default=None, description="null without TLS")
    client: ClientOut
    connections_opened: int | None = Field(description="over the whole run, warm-up included")
    duration_s: float | None = Field(description="length of the measured window")
    steps: list[StepOut] = Field(
        default_factory=list, description="by step; empty when the workload has a single one, or when invalid"
    )
    time_parts: list[PartOut] = Field(
        default_factory=list,
        description="send, wait and receive make up the service time; empty unless asked for or when invalid",
    )


class LoadOut(Measured):
    """`prony load --json`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["load"] = "load"
    id: str
    target: str


class StartUpOut(Out):
    """From exec to the first right answer."""

    time_to_listen_s: float | None = None
    time_to_ready_s: float | None = None
    start_rss_mib: float | None = None
    start_heap_used_mib: float | None = None
    start_classes_loaded: float | None = None
    start_threads: float | None = None
    reported: dict[str, float] = Field(
        default_factory=dict, description="the application's own figures, under its own names and units"
    )


class ServerCostOut(Out):
    """The server over the window, and how it got there."""

    server_cpu_us_per_request: float | None = None
    server_cpu_share: float | None = Field(default=None, description="CPU used ÷ CPU granted, 0 … 1")
    peak_rss_mib: float | None = None
    requests_per_s_per_gib: float | None = None
    service_cpu_us_per_request: float | None = Field(
        default=None, description="CPU of what the server stands on, counted apart from the server's"
    )
    service_cpu_share: float | None = Field(default=None, description="in CPUs: 1 is one CPU full")
    service_rss_mib: float | None = None
    threads: float | None = None
    heap_used_mib: float | None = None
    heap_committed_mib: float | None = None
    gc_share: float | None = None
    jit_share: float | None = None
    time_to_steady_s: float | None = None
    published_requests_per_s: float | None = Field(
        default=None,
        description="what the published protocol would have printed: the first requests to a fresh process",
    )
    published_mean_ms: float | None = None


class TrialOut(Measured):
    """One fresh server process."""

    id: str
    block: int
    position: int
    kind: Literal["trial", "control"] = Field(description="a control takes no part in the comparison")
    counts: bool = Field(description="whether it enters the summary and the pairs")
    rejected_because: str | None
    startup: StartUpOut
    server: ServerCostOut


class SpreadOut(Out):
    """A figure over the trials that count."""

    median: float
    min: float
    max: float
    n: int


class ServerOut(Out):
    """One server under test."""

    name: str
    title: str
    version: str
    versions: dict[str, str]
    jdk: str
    trials: list[TrialOut]
    summary: dict[str, SpreadOut] = Field(description="figure -> its median and range; names carry units")


class PairOut(Out):
    """One figure of two servers: ratio = a ÷ b."""

    a: str
    b: str
    metric: str
    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    verdict: str
    sentence: str
    more_trials: int | None = Field(description="about how many more trials per server would settle it")


class PassOut(Out):
    """A table of the second pass: latency at given rates."""

    title: str
    id: str = Field(description="of the experiment that this pass is stored as")
    head: list[str]
    rows: list[list[str]] = Field(description="a row per server, as printed")
    sentences: list[str]


class CompareOut(Out):
    """`prony compare --json`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["compare"] = "compare"
    id: str
    title: str
    created: str = Field(description="ISO 8601")
    quick: bool
    verdict: Literal["valid", "suspect", "invalid", "unknown"]
    servers: list[ServerOut]
    pairs: list[PairOut]
    published: dict[str, Any] | None = Field(
        description="history: source, note, figures {figure: {server: value}}"
    )
    host: dict[str, Any] | None = Field(description="the fingerprint")
    plan: dict[str, Any]
    warnings: list[str]
    passes: list[PassOut] = Field(
        default_factory=list, description="of --two-pass: at each server's own rate, and at a common one"
    )


def json_schema() -> dict[str, Any]:
    """JSON Schema of all shapes, for the documentation and for whoever reads the output by machine."""
    return {
        "load": LoadOut.model_json_schema(by_alias=True),
        "compare": CompareOut.model_json_schema(by_alias=True),
        "plan": PlanOut.model_json_schema(by_alias=True),
        "rejudge": RejudgedOut.model_json_schema(by_alias=True),
    }


if __name__ == "__main__":
    import json

    print(json.dumps(json_schema(), indent=2))
