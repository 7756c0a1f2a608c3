"""network: segments sent again and accept queues that overflowed, of this load alone."""

from __future__ import annotations

import pytest

from prony.judge.checks.network import network
from prony.judge.finding import Status
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

HEALTHY, LIMITS = f.healthy(), CheckLimits()


def test_an_accept_queue_of_another_server_is_not_held_against_this_one() -> None:
    assert HEALTHY.host_window is not None
    assert HEALTHY.host_window.tcp is not None
    full = HEALTHY.host_window.tcp.model_copy(update={"listen_overflows": 900})
    quick = f.window(HEALTHY, connect_attempts=40_000, connect_time=f.of_values([100_000] * 100))
    found = network(f.part(quick, "host_window", tcp=full), LIMITS)
    assert found is not None
    assert found.status is Status.VALID


def test_a_connect_that_came_to_nothing_shows_whose_accept_queue_was_full() -> None:
    assert HEALTHY.host_window is not None
    assert HEALTHY.host_window.tcp is not None
    full = HEALTHY.host_window.tcp.model_copy(update={"listen_overflows": 900})
    quick = f.window(HEALTHY, connect_attempts=40_000, connect_time=f.of_values([100_000] * 100))
    for kind in ("connect_timeout", "connect_refused"):
        failed = f.window(quick, errors={kind: 40})
        found = network(f.part(failed, "host_window", tcp=full), LIMITS)
        assert found is not None
        assert found.status is Status.INVALID


@pytest.mark.parametrize(
    ("segments_out", "again", "longest_ms", "status"),
    [
        (100_000, 900, 210, Status.SUSPECT),
        (100_000, 900, 3, Status.VALID),
        (2_000, 9, 210, Status.VALID),
    ],
    ids=["of the load", "nobody waited", "too few"],
)
def test_retransmissions_need_a_witness(
    segments_out: int, again: int, longest_ms: int, status: Status
) -> None:
    assert HEALTHY.host_window is not None
    assert HEALTHY.host_window.tcp is not None
    lost = {"segments_out": segments_out, "retransmitted": again}
    counted = HEALTHY.host_window.tcp.model_copy(update=lost)
    waited = f.window(HEALTHY, service_time=f.of_values([1_200_000] * 9_999 + [longest_ms * 1_000_000]))
    found = network(f.part(waited, "host_window", tcp=counted), LIMITS)
    assert found is not None
    assert found.status is status
