"""A load as one types it."""

from typing import Any

import pytest
from pydantic import ValidationError

from prony.cli.load import load_of
from prony.cli.load_options import LoadOptions, in_options, phases, think
from prony.errors import UsageError
from prony.plan.load import ClosedLoad, Connections, Load, OpenLoad
from prony.plan.think import Think


def loaded(**asked: Any) -> Load:
    """The load of these options."""
    return load_of(LoadOptions(**asked).keys()["loads"], default_users=10)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, Think(kind="none")),
        ("0s", Think(kind="none")),
        ("500ms", Think(kind="constant", ms=500)),
        ("constant:2s", Think(kind="constant", ms=2000)),
        ("uniform:0.5s,1.5s", Think(kind="uniform", min_ms=500, max_ms=1500)),
        ("exponential:1s", Think(kind="exponential", mean_ms=1000)),
        ("gaussian:1s,0.2s", Think(kind="gaussian", mean_ms=1000, stdev_ms=200)),
    ],
)
def test_think_times(text: str | None, expected: Think) -> None:
    assert think(text) == expected


@pytest.mark.parametrize("text", ["soon", "uniform:1s", "uniform:2s,1s", "poisson:1s", "gaussian:1s", "-1s"])
def test_think_times_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--think"):
        think(text)


def test_phases_rise_hold_and_pause() -> None:
    rise, hold, pause = phases("10s@0..100,1m@100,500ms@0")
    assert (rise.duration_s, rise.from_per_s, rise.to_per_s) == (10, 0, 100)
    assert (hold.duration_s, hold.from_per_s, hold.to_per_s) == (60, 100, 100)
    assert (pause.duration_s, pause.to_per_s) == (0.5, 0)


@pytest.mark.parametrize("text", ["", "10s", "10s@", "@5", "10s@5..", "10s@0", "10s@1e9", "0s@5"])
def test_phases_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--phases"):
        phases(text)


def test_without_a_rate_it_is_closed() -> None:
    load = loaded(think="1s", ramp_up="2s")
    assert load == ClosedLoad(users=10, think=Think(kind="constant", ms=1000), ramp_up_s=2)


def test_sessions_may_think() -> None:
    load = loaded(rate=5.0, sessions=True, think="1s", deadline="3s")
    assert isinstance(load, OpenLoad)
    assert (load.session, load.think.ms, load.deadline_ms) == ("user", 1000, 3000)


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"sessions": True}, "--sessions applies to an open load"),
        ({"deadline": "1s"}, "--deadline applies to an open load"),
        ({"rate": 5.0, "phases": "1s@5"}, "found --rate and --phases"),
        ({"rate": 5.0, "users": 3}, "--users"),
        ({"rate": 5.0, "think": "1s"}, "--sessions"),
        ({"phases": "1s@5", "ramp_up": "1s"}, "write the ramp as a phase"),
        ({"phases": "1s@5", "ramp_down": "1s"}, "--ramp-down"),
    ],
)
def test_what_does_not_go_together(given: dict[str, Any], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        loaded(**given)


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"connection_per_request": True, "requests_per_connection": 5},
         ("--connection-per-request", "--requests-per-connection")),
        ({"connection_per_request": True, "pipeline": 2}, ("--pipeline", "--connection-per-request")),
        ({"http_version": "1.0", "pipeline": 2}, ("--pipeline", "--http-version 1.0")),
        ({"requests_per_connection": 2**31 + 1}, ("--requests-per-connection",)),
        ({"streams": 2}, ("--streams", "--http-version 2")),
    ],
)  # fmt: skip
def test_connections_are_refused_by_the_plan_in_the_words_of_the_options(
    given: dict[str, Any], options: tuple[str, ...]
) -> None:
    keys = LoadOptions(**given).keys()["connections"]
    with pytest.raises(ValidationError) as refused:
        Connections.model_validate(keys)
    message = in_options(refused.value, "connections")
    assert all(option in message for option in options), message
    assert "keep_alive" not in message
