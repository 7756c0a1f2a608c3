"""The plans that Prony's engine is asked with, held against its own schema."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from bench.cases import CASES, Case
from bench.tools import PeerLoad
from bench.tools.prony import Prony
from prony.load.engine import find_engine


def plan(case: Case) -> dict[str, Any]:
    """Of one case."""
    return Prony("io_uring").plan(PeerLoad(case, "https://127.0.0.1:1/", 2, 0.5, "Hello", 1, seed=7))


def schema_properties() -> dict[str, Any]:
    """`prony-engine schema` as one object per named type."""
    text = subprocess.run([find_engine(), "schema"], capture_output=True, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(text)
    schema: dict[str, Any] = found["plan"]
    return schema


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_keys_are_those_of_the_contract(case: Case) -> None:
    known = schema_properties()["properties"]
    assert set(plan(case)) <= set(known)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_window_ends_with_the_run(case: Case) -> None:
    made = plan(case)
    assert made["window"]["warmup_ms"] + made["window"]["duration_ms"] == made["stop"]["after_ms"] == 2000


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_whole_response_is_checked(case: Case) -> None:
    (step,) = plan(case)["scenarios"][0]["steps"]
    assert step["expect"] == {"status": [200], "body_equals": "Hello"}


def test_the_shape_follows_the_case() -> None:
    for case in CASES:
        made = plan(case)
        assert made["connection"]["reuse"] == ("per_request" if case.per_request else "keep_alive")
        assert ("tls" in made["target"]) == case.tls
        shared = {"connections": case.connections} if case.streams is not None else None
        assert (made.get("http_version"), made.get("http2")) == (shared and "2", shared)
        if case.rate_per_s is None:
            assert made["load"] == {"model": "closed", "users": case.connections * (case.streams or 1)}
        else:
            assert made["load"]["model"] == "open"


def test_extra_evidence_is_asked_for_by_name() -> None:
    for tool, keys in {"": set(), "parts": {"parts"}, "log": {"log"}, "parts+log": {"parts", "log"}}.items():
        made = Prony("epoll", tool).plan(PeerLoad(CASES[1], "http://127.0.0.1:1/", 2, 0.5, "Hello", 1))
        assert set(made) - set(plan(CASES[1])) == keys
        assert made.get("log", "requests.csv").endswith("requests.csv")
