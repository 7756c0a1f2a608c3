"""Loads over HTTP/2: what the engine is asked for, and what several engines say, as one."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from prony.evidence.counts import Http2Counts
from prony.evidence.engine import Counters
from prony.load.contract import EngineLoad, engine_plan
from prony.load.facts import load_facts
from prony.plan import workload
from prony.plan.load import ClosedLoad, Connections, Load, OpenLoad, RatePhase
from prony.plan.trial import quick_trial
from prony.plan.workload import from_url
from prony_hosts.load.adding import counted

ARRIVALS = OpenLoad(phases=(RatePhase(duration_s=1, from_per_s=10, to_per_s=10),), max_users=60)


def asked(load: Load, cpus: tuple[int, ...] = (0,), **connections: Any) -> dict[str, Any]:
    over = Connections(http_version="2", **connections)
    given = EngineLoad(url="http://h", workload=from_url("/"), load=load, connections=over, cpus=cpus)
    return engine_plan(given)


@pytest.mark.parametrize(
    ("connections", "shared"),
    [({}, None), ({"streams": 32}, 32), ({"streams": 1000}, 1), ({"count": 10}, 10), ({"count": 5000}, 1000)],
)
def test_users_share_connections_as_asked(connections: dict[str, Any], shared: int | None) -> None:
    plan = asked(ClosedLoad(users=1000), **connections)
    assert plan["http_version"] == "2"
    assert plan.get("http2") == (None if shared is None else {"connections": shared})


def test_every_thread_of_the_engine_has_a_connection() -> None:
    assert asked(ClosedLoad(users=8), cpus=(0, 1), streams=8)["http2"] == {"connections": 2}


def test_arrivals_share_connections_by_their_places() -> None:
    assert asked(ARRIVALS, streams=20)["http2"] == {"connections": 3}


def test_the_checks_know_what_was_asked() -> None:
    facts = load_facts(ClosedLoad(users=100), from_url("/"), Connections(http_version="2", count=3))
    assert (facts.http_version, facts.shared_connections, facts.streams_per_connection) == ("2", 3, 34)
    alone = load_facts(ClosedLoad(users=100), from_url("/"), Connections(http_version="2"))
    assert (alone.shared_connections, alone.streams_per_connection) == (None, 1)
    plain = load_facts(ClosedLoad(users=100), from_url("/"), Connections())
    assert (plain.http_version, plain.streams_per_connection) == ("1.1", None)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"streams": 2}, "http_version '2'"),
        ({"count": 2}, "http_version '2'"),
        ({"http_version": "2", "pipeline": 2}, "give streams"),
        ({"http_version": "2", "streams": 2, "count": 2}, "give one of them"),
        ({"http_version": "2", "streams": 2, "keep_alive": False}, "cannot close it"),
        ({"http_version": "2", "count": 2, "max_requests": 5}, "cannot close it"),
        ({"http_version": "3"}, "http_version"),
    ],
)
def test_what_does_not_fit_together_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        Connections.model_validate(given)


def test_a_server_of_http_2_is_loaded_over_it_and_the_load_says_so() -> None:
    trial = quick_trial(workload.load("hello"), 10, None)
    assert trial.in_http_version(None) is trial
    over = trial.in_http_version("2")
    assert over.connections.http_version == "2"
    assert over.load_name == trial.load_name + "-h2"
    shared = over.model_copy(update={"connections": Connections(http_version="2", streams=5)})
    assert shared.load_name == trial.load_name + "-h2-5-streams"
    shared = over.model_copy(update={"connections": Connections(http_version="2", count=2)})
    assert shared.load_name == trial.load_name + "-h2-on-2"


def test_counts_of_several_engines_add_up_and_the_worst_of_waits_and_limits_stays() -> None:
    parts = [
        Counters(
            http2=Http2Counts(
                streams_opened=opened,
                max_concurrent_streams=limit,
                stream_wait_sum_s=0.5,
                stream_wait_max_ms=longest,
                resets_received={"CANCEL": 1},
            )
        )
        for opened, limit, longest in ((10, None, 1.0), (20, 100, 7.0), (30, 128, 2.0))
    ]
    together = counted(parts)["http2"]
    assert (together.streams_opened, together.max_concurrent_streams) == (60, 100)
    assert (together.stream_wait_sum_s, together.stream_wait_max_ms) == (1.5, 7.0)
    assert together.resets_received == {"CANCEL": 3}
    assert counted([Counters(), Counters()])["http2"] is None
