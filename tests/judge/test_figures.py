"""Figures: computed by hand from the factory's numbers; absent when their counters are."""

from __future__ import annotations

import math

import pytest

from prony.evidence.engine import EngineReport, Mark, StepFigures, Window
from prony.evidence.server import ServerIdentity, ServiceUse
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.figures import FIGURE, FIGURES, Figures, figures
from prony.judge.times import headline_times, percentiles, session_times, step_times
from tests.judge import factory as f


def test_by_hand() -> None:
    found = figures(f.healthy())
    assert found.requests_per_s == pytest.approx(8000)
    assert found.mean_ms == pytest.approx(1.25, rel=1e-3)
    assert found.p50_ms == pytest.approx(1.25 * 2.718281828 ** (-(0.3**2) / 2), rel=0.01)
    assert found.server_cpu_us_per_request == pytest.approx(9.6 / 80_000 * 1e6)
    assert found.client_cpu_us_per_request == pytest.approx(4.1 / 80_000 * 1e6)
    assert found.server_cpu_share == pytest.approx(0.96)
    assert found.client_cpu_share == pytest.approx(0.41)
    assert found.peak_rss_mib == pytest.approx(256)
    assert found.requests_per_s_per_gib == pytest.approx(32_000)
    assert found.time_to_ready_s == 2.4
    assert found.time_to_steady_s == 31
    assert found.gc_share == pytest.approx(0.005)
    assert found.jit_share == pytest.approx(0.03 / 9.6)
    assert found.heap_used_mib == 64
    assert found.start_classes_loaded == 9000
    assert found.reported == {"jvm_memory_used_mb": 168.0}


def test_the_published_protocol_prints_what_ab_would() -> None:
    """10,000 requests, 10 at a time, in 6.483 s: 1,542 requests/s and 6.483 ms (experiment C's Tomcat)."""
    evidence = f.engine(f.healthy(), marks=(Mark(requests=10_000, elapsed_ms=6483.0),))
    found = figures(evidence)
    assert found.published_requests_per_s == pytest.approx(1542, abs=1)
    assert found.published_mean_ms == pytest.approx(6.483)
    assert figures(f.engine(f.healthy(), marks=())).published_requests_per_s is None
    before = f.healthy().model_copy(update={"published": Mark(requests=10_000, elapsed_ms=5000.0)})
    assert figures(before).published_requests_per_s == pytest.approx(2000), "by an engine of its own"


def test_wrong_responses_are_not_throughput() -> None:
    wrong = f.window(f.healthy(), failed=400, errors={"expect_body": 400})
    assert figures(wrong).requests_per_s == pytest.approx(7960)


def test_cpu_per_request_is_a_ratio_of_rates() -> None:
    """The server's readings cover 10.1 s, the engine's window 10.0 s: neither may leak into the figure."""
    late = f.part(f.healthy(), "server_window", wall_s=10.1, cpu_user_s=8.08, cpu_system_s=1.616)
    assert figures(late).server_cpu_us_per_request == pytest.approx(120)
    counted = f.part(late, "server_window", instructions=2_020_000_000)
    assert figures(counted).server_instructions_per_request == pytest.approx(25_000)
    assert figures(late).server_instructions_per_request is None


def test_the_open_model_prints_latency_from_the_intended_send() -> None:
    evidence = f.window(f.open_model(), latency=f.histogram(mean_ms=40))
    assert figures(evidence).mean_ms == pytest.approx(40, rel=1e-3)


def test_absent_never_zero() -> None:
    bare = Evidence(load=LoadFacts(model="closed"), server=ServerIdentity(name="x"))
    assert figures(bare).numbers() == {}
    assert figures(bare) == Figures()
    assert "server_cpu_us_per_request" not in figures(f.by_url()).numbers()


def test_the_table_knows_every_figure_once() -> None:
    known = set(Figures.__dataclass_fields__) - {"reported"}
    assert [figure.name for figure in FIGURES] == list(dict.fromkeys(figure.name for figure in FIGURES))
    assert {figure.name for figure in FIGURES} == known == set(FIGURE)
    elsewhere = {name for name in known if name.startswith("session")}  # open loads of users who walk
    elsewhere |= {"handshakes_per_request", "resumed_share"}  # TLS
    elsewhere |= {"server_instructions_per_request"}  # on request
    elsewhere |= {name for name in known if name.startswith("service")}  # backing services, connecting
    assert set(figures(f.healthy()).numbers()) == (known - elsewhere) | {"jvm_memory_used_mb"}


def test_services_are_counted_apart() -> None:
    use = ServiceUse(name="memcached", wall_s=10.0, cpu_user_s=1.0, cpu_system_s=1.5, peak_rss_bytes=64 << 20)
    found = figures(f.healthy().model_copy(update={"services": (use,)}))
    assert found.service_cpu_share == pytest.approx(0.25)
    assert found.service_cpu_us_per_request == pytest.approx(2.5 / 80_000 * 1e6)
    assert found.service_rss_mib == pytest.approx(64)
    assert found.server_cpu_share == figures(f.healthy()).server_cpu_share
    assert found.peak_rss_mib == figures(f.healthy()).peak_rss_mib
    assert figures(f.healthy()).service_cpu_share is None
    unread = figures(f.healthy().model_copy(update={"services": (use, ServiceUse(name="other"))}))
    assert unread.service_cpu_share is None
    assert unread.service_rss_mib is None


def failing(count: int, kind: str = "read", **changes: object) -> Evidence:
    """80,000 responses, and so many requests without one."""
    return f.window(f.healthy(), failed=count, errors={kind: count}, **changes)


def test_failed_requests_are_longer_than_any_response() -> None:
    clean, some = figures(f.healthy()), figures(failing(400))
    assert clean.p99_ms is not None
    assert some.p99_ms is not None
    assert some.p99_ms > clean.p99_ms
    found = percentiles(failing(400))
    assert found["p99_ms"].responses_ms == pytest.approx(clean.p99_ms)
    assert found["p999_ms"].value_ms == math.inf, "the longest 0.5 % failed"
    assert found["p999_ms"].above_ms == pytest.approx(clean.max_ms)
    assert figures(failing(400)).p999_ms is None
    assert percentiles(f.healthy())["p99_ms"].responses_ms is None


def test_timeouts_have_their_sample_and_are_counted_once() -> None:
    """79,600 responses and 400 timeouts, which are the longest of 80,000 samples."""
    timed_out = failing(400, "timeout", completed=79_600)
    times = headline_times(timed_out)
    assert times is not None
    assert (times.count, times.failed) == (80_000, 400)
    assert figures(timed_out).p90_ms == figures(f.healthy()).p90_ms
    assert percentiles(timed_out)["p999_ms"].value_ms == math.inf


def test_a_wrong_response_has_its_time() -> None:
    wrong = failing(400, "expect_body")
    assert percentiles(wrong) == percentiles(f.healthy())


def test_what_was_due_and_never_sent_failed_and_what_was_sent_later_did_not() -> None:
    late = f.window(f.open_model(), due_unsent=800)
    assert figures(f.totals(late, due_unsent=0)).p99_ms == figures(f.open_model()).p99_ms
    lost = percentiles(f.totals(late, due_unsent=800))
    assert lost["p999_ms"].value_ms == math.inf


def test_of_a_step_whose_failures_may_be_wrong_responses_only_timeouts_are_counted() -> None:
    step = StepFigures(
        scenario="s", name="a", completed=1000, failed=30, service_time=f.histogram(count=1010)
    )
    right = f.healthy().engine
    assert right is not None
    assert right.window is not None
    plain = right.window.model_copy(update={"steps": (step,), "failed": 30, "errors": {"read": 30}})
    mixed = plain.model_copy(update={"errors": {"read": 20, "expect_body": 10}})
    both = [f.healthy().model_copy(update={"engine": with_window(right, one)}) for one in (plain, mixed)]
    counted = [times.failed for evidence in both if (times := step_times(step, evidence))]
    assert counted == [30, 10]


def with_window(engine: EngineReport, window: Window) -> EngineReport:
    return engine.model_copy(update={"window": window})


def queued(told: bool = True, drift_ms: int = 4) -> Evidence:
    """An open loop whose requests wait ever longer for a connection, while their service time stays level."""
    open_loop = f.window(f.open_model(), latency=f.histogram(mean_ms=20))
    assert open_loop.engine is not None
    rows = tuple(
        row.model_copy(
            update={
                "latency_p50_ns": (1 + drift_ms * at % 40) * 10**6 if told else None,
                "latency_p99_ns": (8 + drift_ms * at % 40) * 10**6 if told else None,
            }
        )
        for at, row in enumerate(open_loop.engine.rows)
    )
    return f.engine(open_loop, rows=rows)


def test_the_interval_of_latencies_goes_by_the_seconds_of_latency() -> None:
    level, drifting = headline_times(f.open_model()), headline_times(queued())
    assert level is not None
    assert drifting is not None
    assert drifting.count == level.count
    assert level.worth(50.0) > 0.5 * level.count
    assert drifting.worth(50.0) < 0.01 * drifting.count
    low_ms, high_ms = drifting.mean_interval()
    assert high_ms - low_ms > 10
    alone = headline_times(queued(told=False))
    assert alone is not None
    assert alone.mean_interval() == (-math.inf, math.inf), "the service times say nothing of waiting"


def test_steps_and_sessions_are_worth_what_the_seconds_of_the_window_say() -> None:
    """Beside a headline p99 of requests that cluster, theirs is not that of independent ones."""
    sessions = f.histogram(count=8000)
    evidence = f.window(f.healthy(), session_time=sessions)
    assert evidence.engine is not None
    rows = tuple(
        row.model_copy(update=dict.fromkeys(("p50_ns", "p90_ns", "max_ns"), ms * 10**6))
        for at, row in enumerate(evidence.engine.rows)
        for ms in [15 if at % 2 else 1]
    )
    apart = f.engine(evidence, rows=rows)
    step = StepFigures(scenario="s", name="a", completed=8000, service_time=f.histogram(count=8000))
    worth = [
        times.worth(50.0) / times.count
        for times in (headline_times(apart), step_times(step, apart), session_times(apart))
        if times is not None
    ]
    assert len(worth) == 3
    assert max(worth) < 0.1
    level = [one for one in (step_times(step, evidence), session_times(evidence)) if one is not None]
    assert min(times.worth(50.0) for times in level) > 4000


def test_where_connections_were_opened_times_are_counted_from_the_connect() -> None:
    connecting = f.window(f.healthy(), response_time=f.histogram(mean_ms=40))
    found = figures(connecting)
    assert found.mean_ms == pytest.approx(40, rel=1e-3)
    assert found.service_time_p99_ms == figures(f.healthy()).p99_ms
    assert figures(f.healthy()).service_time_p99_ms is None
    assert percentiles(connecting)["p50_ms"].value_ms == found.p50_ms


def test_an_open_loop_has_service_times_beside_its_latencies() -> None:
    evidence = f.window(f.open_model(), latency=f.histogram(mean_ms=40))
    assert figures(evidence).service_time_p50_ms == figures(f.healthy()).p50_ms
