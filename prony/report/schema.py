"""The JSON that `--json` prints. `schema` is raised when a key is renamed, removed or changes its meaning."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from prony import seams
from prony.compare.false_differences import FalseDifferences
from prony.compare.levels import Levels
from prony.compare.scaling import Estimate as LawEstimate
from prony.evidence.host import CpuPartition, Fingerprint
from prony.evidence.trial import ProcessFacts
from prony.judge.estimate import Estimate, Uncertainty
from prony.judge.finding import Finding, Plateau
from prony.plan.cell import PublishedFigures
from prony.plan.objective import Objective
from prony.plan.plan import Skipped
from prony.report.aa import OnRecord
from prony.report.cell_view import Condition, Spread
from prony.report.hosts import HostLine
from prony.report.listings import DoctorOut, DryRunOut, HostsCheckOut, ListOut, NoteOut, PruneOut, ServersOut
from prony.report.out import Out
from prony.report.rejudged import RejudgedOut
from prony.report.result import GateView, PairView, PositionView, ServerView, SharedView
from prony.report.shapes import FindingGroup
from prony.report.trial_tables import StepLine, TimePart


class TimesOut(Out):
    """The times of the window's requests, in ms."""

    min_ms: float | None = None
    mean_ms: float | None = None
    p50_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    max_ms: float | None = None


class PercentileOut(Out):
    """A percentile of all requests of the window, in which those that failed are longer than any response."""

    value_ms: float | None = Field(description="null where it falls among requests that failed")
    low_ms: float | None = Field(description="lower end of the interval; null like the value")
    high_ms: float | None = Field(description="upper end; null where no response bounds it")
    above_ms: float | None = Field(description="what a null value exceeds: the longest time seen")
    responses_ms: float | None = Field(description="of the responses alone; null where nothing failed")


class CountsOut(Out):
    """What the engine counted: over the window, or, where it says so, over the whole run."""

    requests: int | None = Field(default=None, description="complete responses, whatever their status")
    failed: int | None = None
    errors: dict[str, int] = Field(default_factory=dict, description="failed requests by kind")
    status_codes: dict[str, int] = Field(default_factory=dict, description="responses by HTTP status")
    blocked: int | None = Field(default=None, description="open loop: arrivals at the cap of users, not sent")
    sessions_begun: int | None = None
    sessions_completed: int | None = None
    connections_opened: int | None = Field(default=None, description="whole run, warm-up included")
    tls_handshakes: int | None = Field(default=None, description="whole run")
    tls_resumptions: int | None = Field(default=None, description="whole run")


class NotConformingOut(Out):
    """Why a trial has no figure."""

    code: str = Field(description="check.code")
    reason: str


class BudgetOut(Out):
    """A source in a figure's budget."""

    source: str = Field(description="the check's name")
    code: str
    figure: str
    low: float | None = Field(description="relative: -0.03 is 3 % lower; null where not bounded")
    high: float | None
    assumption: str
    advice: str


class TrialOut(Out):
    """A trial: a fresh server process, or a run against a URL."""

    id: str
    block: int
    position: int
    kind: Literal["trial", "control", "explained"] = Field(
        description="a control takes no part in the comparison"
    )
    process: ProcessFacts | None = Field(
        default=None,
        description="where it measured several loads: which process, and the place of this load in it",
    )
    conforms: bool = Field(description="whether the plan was carried out; figures exist only then")
    not_conforming: list[NotConformingOut]
    counts: bool = Field(description="whether it enters the figures of its cell and the pairs")
    repeated: bool = Field(description="whether a later attempt replaces it")
    bound_by: str = Field(description="what bound the throughput")
    driver: str | None = Field(description="io_uring or epoll")
    duration_s: float | None = Field(description="length of the measured window")
    figures: dict[str, Estimate] = Field(
        description="names carry units; times of an open loop are latencies. low, high: 95 % interval; "
        "bias_low, bias_high: the budget's sum, relative; plateau_low, plateau_high: from now on up to "
        "horizon_s, in the worst case. null: not bounded, or not known"
    )
    budget: list[BudgetOut]
    service_time: TimesOut | None = Field(description="from the actual send to the end of the response")
    response_time: TimesOut | None = Field(
        description="closed loop: from the start of the connect; null where no request opened a connection"
    )
    latency: TimesOut | None = Field(description="open loop: from the intended send; null for a closed loop")
    percentiles: dict[str, PercentileOut] = Field(
        description="of the figures' times, with 95 % intervals (limits: samples_confidence)"
    )
    reported: dict[str, float] = Field(
        description="the application's own figures at ready, under its own names and units"
    )
    counters: CountsOut
    steps: list[StepLine] = Field(description="empty when the workload has a single one, or when rejected")
    time_parts: list[TimePart] = Field(
        description="send, wait and receive make up the service time; empty unless requested"
    )
    hosts: list[HostLine] = Field(
        default_factory=list, description="each host with its link; empty where everything was on one host"
    )
    findings: list[Finding]
    notes: list[str]


class CellOut(Out):
    """A server under a load of a workload."""

    id: str = Field(description="part/server/workload/load")
    server: str
    workload: str
    load: str
    users: int | None = Field(description="of a closed loop")
    offered_per_s: float | None = Field(description="of an open loop with a constant rate")
    conforms: bool | None = Field(description="whether any trial does; null before any ended")
    not_conforming: list[str] = Field(description="why trials do not conform, each check once")
    bound_by: str
    plateau: Plateau | None = Field(
        description="residual drift of the headline figure, pooled over its trials; null "
        "where no plateau is claimed"
    )
    uncertainty: dict[str, Uncertainty] = Field(
        description="by figure: interval of the mean over trials, and the budget, relative"
    )
    budget: list[BudgetOut] = Field(description="by figure and source, the mean over its trials")
    provided: list[Condition] = Field(description="what its figures rest on where nothing bounds it")
    planned_trials: int
    ended_trials: int
    counting_trials: int = Field(description="those whose figures are printed")
    figures: dict[str, Spread] = Field(description="empty when no trial counts")
    published: list[PublishedFigures]
    trials: list[TrialOut]


class LawOut(Out):
    """The Universal Scalability Law, fitted to a server's counting trials."""

    server: str
    rising: bool = Field(description="whether throughput still rises at the largest number of users")
    rate_1_per_s: LawEstimate
    alpha: LawEstimate = Field(description="contention")
    beta: LawEstimate = Field(description="coherency")
    peak_users: LawEstimate
    peak_seen: bool
    sweet_spot_users: LawEstimate
    miss: float = Field(description="root mean square of the log residuals")
    poor: bool
    confidence: float
    fitted_per_s: dict[str, float] = Field(description="number of users -> throughput by the law")
    sentences: list[str]


class TriedOut(Out):
    """A trial of a capacity search."""

    trial: str
    rate_per_s: float
    outcome: Literal["met", "missed", "undecided", "client", "unusable"]
    pressure: float | None = Field(description="measured ÷ allowed of the tightest objective")


class SearchOut(Out):
    """A capacity search."""

    objectives: list[Objective]
    held_per_s: float | None
    failed_per_s: float | None
    client_per_s: float | None = Field(description="the lowest rate that the client could not offer")
    undecided_per_s: float | None = Field(
        description="the lowest rate at which the objective's limit stayed within the interval"
    )
    end: Literal["found", "undecided", "client", "never", "highest", "unusable", "trials"] | None
    sentence: str
    tried: list[TriedOut]


class PartOut(Out):
    """Cells that are read together."""

    name: str
    title: str
    note: str
    shape: Literal["comparison", "matrix", "sweep", "capacity", "single", "cross-check", "aa", "gate"]
    conforms: bool | None = Field(
        description="whether every requested figure exists; null if interrupted before"
    )
    explanations: list[dict[str, Any]] = Field(
        default_factory=list, description="of explained servers: where CPU time goes (schema: explanation)"
    )
    differences: list[dict[str, Any]] = Field(
        default_factory=list, description="of pairs of them, attributed to parts (schema: difference)"
    )
    failure: str = Field(description="why a part that follows another was not run; else empty")
    cells: list[CellOut]
    skipped: list[Skipped]
    pairs: list[PairView]
    positions: list[PositionView] = Field(description="the effect of a trial's place in its block")
    shared: list[SharedView] = Field(
        default_factory=list, description="of loads that shared processes: from load to load, and their order"
    )
    levels: Levels | None = Field(description="of a comparison: variance within and between processes")
    aa: FalseDifferences | None = Field(description="of prony aa: how often a server was called different")
    aa_on_record: OnRecord | None = Field(description="of a comparison: the stored prony aa that fits")
    gate: GateView | None = Field(
        default=None, description="of prony gate: is the candidate no worse than its base?"
    )
    findings: list[FindingGroup]
    laws: list[LawOut] = Field(description="of a sweep, one per server")
    search: SearchOut | None = Field(description="of a capacity search")
    cross_check: dict[str, Any] | None = Field(
        description="of prony second-opinion (schema: cross-check); null without its package"
    )


class ResultOut(Out):
    """A stored experiment of any command."""

    schema_: Literal[3] = Field(default=3, alias="schema")
    kind: Literal["result"] = "result"
    id: str
    title: str
    note: str = Field(description="of the plan")
    tags: list[str]
    notes: list[NoteOut] = Field(description="what people wrote about it, the oldest first")
    command: str
    created: str = Field(description="ISO 8601")
    status: Literal["running", "finished", "interrupted"]
    quick: bool
    conforms: bool = Field(description="whether every trial conforms")
    sentence: str = Field(description="the answer, in a sentence")
    planned_trials: int = Field(description="as far as the plan has been drawn up; at most, with until_clear")
    ended_trials: int
    warnings: list[str]
    servers: list[ServerView]
    parts: list[PartOut]
    seed: int
    host: Fingerprint | None
    partition: CpuPartition | None
    plan: dict[str, Any] = Field(description="exactly what was run")


class SideOut(Out):
    """A side of two results."""

    id: str
    title: str
    fingerprint: Fingerprint | None


class TwoRatiosOut(Out):
    """A pair of servers in both results."""

    where: str
    a: str
    b: str
    figure: str
    words: str
    sides: list[PairView | None]


class TwoFiguresOut(Out):
    """A server's figure in both results."""

    where: str
    server: str
    figure: str
    sides: list[Spread | None]
    change: float | None = Field(
        description="second ÷ first less 1, indicative; null between hosts or protocols that differ"
    )


class TwoResultsOut(Out):
    """`prony compare-results --json`."""

    schema_: Literal[3] = Field(default=3, alias="schema")
    kind: Literal["compare-results"] = "compare-results"
    confounded: bool
    words: str
    results: list[SideOut]
    ratios: list[TwoRatiosOut]
    figures: list[TwoFiguresOut]
    differing: list[tuple[str, str, str]] = Field(description="field of the fingerprint, first, second")


def json_schema() -> dict[str, Any]:
    return {
        "result": ResultOut.model_json_schema(by_alias=True),
        "results": ListOut.model_json_schema(by_alias=True),
        "prune": PruneOut.model_json_schema(by_alias=True),
        "compare-results": TwoResultsOut.model_json_schema(by_alias=True),
        "rejudge": RejudgedOut.model_json_schema(by_alias=True),
        "hosts-check": HostsCheckOut.model_json_schema(by_alias=True),
        "dry-run": DryRunOut.model_json_schema(by_alias=True),
        "doctor": DoctorOut.model_json_schema(by_alias=True),
        "servers": ServersOut.model_json_schema(by_alias=True),
        **{
            name: TypeAdapter(seams.found(seams.SCHEMAS, name)).json_schema(by_alias=True)
            for name in seams.names(seams.SCHEMAS)
        },
    }


if __name__ == "__main__":
    import json

    print(json.dumps(json_schema(), indent=2))
