"""prony jmeter: Synchronizing Timers, whose threads wait for each other, beside JMeter 5.6.3."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.load import ClosedLoad, WholeRun
from prony_frontends.base import Refused
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import explained
from tests.frontends.jmx_text import document, element, flag, prop, repeated, sampler, translated_of
from tests.frontends.real_jmeter import BOTH, offered_by
from tests.frontends.site import Response, site
from tests.frontends.test_jmeter_groups import plan


def timer(size: object, timeout_ms: object = 0) -> str:
    return element(
        "SyncTimer", f'<intProp name="groupSize">{size}</intProp>',
        f'<longProp name="timeoutInMs">{timeout_ms}</longProp>',
    )  # fmt: skip


def threads(count: int, ramp_s: object, loops: object = 1, more: str = "") -> str:
    return (
        prop("ThreadGroup.num_threads", count)
        + prop("ThreadGroup.ramp_time", ramp_s)
        + more
        + repeated(loops)
    )


def begins(made: object) -> list[tuple[int, float]]:
    """Users and when they start."""
    load = made.trial.load  # type: ignore[attr-defined]
    assert isinstance(load, ClosedLoad)
    return [(one.users, one.start_s) for one in load.populations]


def test_all_threads_begin_when_the_last_has_started() -> None:
    made = translated_of(timer(0) + sampler(), group=threads(5, 10))
    assert made.trial.load == ClosedLoad(users=5)
    assert noted(made.notes, "batches", "5 begin", "8 s")
    assert noted(made.notes, "start_delay", "8 s")
    below = translated_of(sampler("/a", below=timer(5)) + sampler("/b"), group=threads(5, 10))
    assert below.trial.load == made.trial.load


def test_smaller_groups_begin_one_after_the_other() -> None:
    made = translated_of(timer(2) + sampler(), group=threads(6, 12))
    assert begins(made) == [(2, 2.0), (2, 6.0), (2, 10.0)]
    assert explained(made).load == made.trial.load
    assert begins(translated_of(timer(3, 500) + sampler(), group=threads(7, 0))) == [(6, 0), (1, 0.5)]


def test_the_first_who_waits_waits_no_longer_than_the_timeout() -> None:
    made = translated_of(timer(3, 3000) + sampler(), group=threads(4, 8))
    assert begins(made) == [(2, 3.0), (2, 7.0)]


def test_where_nobody_waits_nothing_changes() -> None:
    plain = translated_of(sampler() + sampler(), group=threads(4, 8, 3))
    assert translated_of(timer(1) + sampler() + sampler(), group=threads(4, 8, 3)) == plain
    assert translated_of(timer(0) + sampler(), group=threads(1, 0, 9)).trial.load == ClosedLoad(users=1)


def test_a_log_in_that_is_made_once() -> None:
    once = element("OnceOnlyController", below=sampler("/in", below=timer(0)))
    made = translated_of(once + sampler("/page"), group=threads(4, 4, 3))
    assert made.trial.load == ClosedLoad(users=4)
    assert made.trial.measured == WholeRun(iterations_per_user=3)


def test_the_time_that_threads_wait_is_part_of_their_group() -> None:
    scheduled = flag("ThreadGroup.scheduler", True) + prop("ThreadGroup.duration", 20)
    made = translated_of(timer(0) + sampler(), group=threads(4, 8, 1, scheduled))
    assert made.trial.measured == WholeRun(duration_s=14, iterations_per_user=1)
    waves = translated_of(timer(2) + sampler(), group=threads(4, 8, 1, scheduled)).trial.load
    assert isinstance(waves, ClosedLoad)
    assert [one.end_s for one in waves.populations] == [20, 20]


LOOP = element("LoopController", prop("LoopController.loops", 2), below=sampler("/a", below=timer(0)))


@pytest.mark.parametrize(
    ("inside", "group", "says"),
    [
        (timer(0) + sampler() + sampler(), threads(2, 1), "requests other than the first"),
        (sampler() + sampler("/b", below=timer(2)), threads(2, 1), "requests other than the first"),
        (timer(0) + sampler(), threads(2, 1, 3), "a request that is repeated"),
        (LOOP, threads(2, 1), "a request that is repeated"),
        (timer(2) + timer(2) + sampler(), threads(2, 1), "2 of them in one group"),
        (timer(3) + sampler(), threads(4, 1), "expected groups of 3 threads, or a timeout: 1 of 4"),
        (timer(2, -1) + sampler(), threads(4, 1), "a timeout of at least 0"),
        (timer(2) + sampler(), threads(1002, 1), "501 groups of threads"),
    ],
)
def test_where_users_would_have_to_wait_for_each_other(inside: str, group: str, says: str) -> None:
    with pytest.raises((Refused, UsageError), match=says):
        translated_of(inside, group=group)


def test_one_above_all_groups() -> None:
    with refuses("unsupported", "SyncTimer"):
        translated_of(sampler(), beside=timer(2), group=threads(2, 1))


def test_groups_that_run_one_after_the_other() -> None:
    met = element("ThreadGroup", threads(4, 2), below=timer(2) + sampler())
    with refuses("unsupported", "ThreadGroup"):
        plan(met + met, serial=True)


SLOW = {"/": Response(delay_s=1.0)}


def meeting_plan(port: int, folder: Path) -> Path:
    """Four threads within four seconds, in pairs; nobody would meet without the timer."""
    inside = timer(2) + sampler("/", prop("HTTPSampler.port", port))
    (folder / "p.jmx").write_bytes(document(inside, group=threads(4, 8)))
    return folder / "p.jmx"


@BOTH
def test_they_ask_at_once(who: str, tmp_path: Path) -> None:
    with site(SLOW) as server:
        offered_by(who, meeting_plan(server.port, tmp_path))
    assert (len(server.paths), server.most_at_once) == (4, 2)
