"""prony jmeter: the Precise Throughput Timer, with the arrivals that JMeter 5.6.3 draws."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.blocks import Pace
from prony.plan.step import Block
from prony_frontends.base import Refused, Translated
from prony_frontends.jmeter.functions import LONGEST_S
from prony_frontends.jmeter.precise import BURST_PER_S, MOST_PHASES
from tests.frontends.codes import noted
from tests.frontends.conftest import Served, explained, offered
from tests.frontends.jmx_text import document, element, flag, prop, repeated, sampler, translated_of
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter

SEED = 7


def timer(
    throughput: object = 10, period_s: object = 2, duration_s: object = 2, batch: object = 1, seed: int = SEED
) -> str:
    def number(name: str, value: object) -> str:
        return (
            f"<doubleProp><name>{name}</name><value>{value}</value><savedValue>0.0</savedValue></doubleProp>"
        )

    return element(
        "PreciseThroughputTimer", number("throughput", throughput), number("allowedThroughputSurplus", 1.0),
        f'<intProp name="throughputPeriod">{period_s}</intProp>',
        f'<longProp name="duration">{duration_s}</longProp>',
        f'<intProp name="batchSize">{batch}</intProp>', '<intProp name="batchThreadDelay">0</intProp>',
        '<intProp name="exactLimit">10000</intProp>', f'<longProp name="randomSeed">{seed}</longProp>',
    )  # fmt: skip


def lasting(seconds: object, count: int = 4) -> str:
    scheduled = flag("ThreadGroup.scheduler", True) + prop("ThreadGroup.duration", seconds)
    return prop("ThreadGroup.num_threads", count) + repeated(-1) + scheduled


def paces(made: Translated) -> list[Pace]:
    steps = made.trial.workload.steps
    return [one.pace for one in steps if isinstance(one, Block) and one.pace is not None]


def arrivals(pace: Pace) -> list[float]:
    """When each passage is due, without those of the end, which are even."""
    batches = any(phase.from_per_s == BURST_PER_S for phase in pace.phases)
    found, now_s = [] if batches else [pace.phases[0].duration_s], 0.0
    for phase in pace.phases[:-1]:
        many = round(phase.from_per_s * phase.duration_s)
        if phase.from_per_s == BURST_PER_S:
            found += [now_s] * many
        else:
            found += [now_s + phase.duration_s * (n + 1) / many for n in range(many)]
        now_s += phase.duration_s
    return found


def test_all_requests_of_a_group_share_one_schedule() -> None:
    made = translated_of(timer() + sampler("/a") + sampler("/b"), group=lasting(6))
    first, second = paces(made)
    assert first == second
    assert first.per == "run"
    times = arrivals(first)
    assert len(times) == 30
    assert times == sorted(times)
    assert all(sum(2 * n <= at < 2 * n + 2 for at in times) == 10 for n in range(3))
    assert (first.phases[-1].from_per_s, first.phases[-1].duration_s) == (5, LONGEST_S)
    assert noted(made.notes, "arrivals_drawn", "30", "4 threads")
    assert explained(made).workload == made.trial.workload


def test_batches_are_due_together() -> None:
    made = translated_of(timer(batch=5) + sampler(), group=lasting(2))
    times = arrivals(paces(made)[0])
    assert len(times) == 10
    assert times[:5] == [times[0]] * 5
    assert times[5:] == [times[5]] * 5


def test_of_many_arrivals_neighbours_are_evenly_spaced() -> None:
    made = translated_of(timer(10_000, 1, 60, seed=0) + sampler(), group=lasting(60))
    (pace,) = paces(made)
    assert len(pace.phases) <= MOST_PHASES + 2
    assert sum(phase.from_per_s * phase.duration_s for phase in pace.phases[:-1]) == pytest.approx(
        6e5, rel=0.01
    )
    assert noted(made.notes, "arrivals_drawn", "each 300")


def test_without_a_seed_no_two_are_alike() -> None:
    def drawn() -> Pace:
        return paces(translated_of(timer(seed=0) + sampler(), group=lasting(2)))[0]

    assert drawn() != drawn()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (timer(0), "a throughput above 0"),
        (timer(duration_s=0), "a throughput above 0"),
        (timer(period_s=0), "a throughput above 0"),
        (timer(100_000, 1, 60, batch=2), "batches of arrivals"),
        (timer() + timer(), "second throughput timer"),
    ],
)
def test_what_cannot_be_done_is_said(given: str, says: str) -> None:
    with pytest.raises((Refused, UsageError), match=says):
        translated_of(given + sampler(), group=lasting(2))


def plan(port: int, folder: Path, batch: int = 1) -> Path:
    inside = timer(batch=batch) + sampler("/", prop("HTTPSampler.port", port))
    (folder / "p.jmx").write_bytes(document(inside, group=lasting(2, 20)))
    return folder / "p.jmx"


def test_it_lets_so_many_through(serve: Callable[..., Served]) -> None:
    server = serve()
    inside = timer() + sampler("/", prop("HTTPSampler.port", server.port))
    report = offered(translated_of(inside, group=lasting(2, 20)))
    assert 1 <= report.totals.completed <= 10
    assert not report.totals.errors


@needs_jmeter
def test_jmeter_itself_draws_the_same_arrivals(serve: Callable[..., Served], tmp_path: Path) -> None:
    run_jmeter(["-n", "-t", str(plan(serve().port, tmp_path))], tmp_path)
    said = re.findall(r"fired at: (.*)", (tmp_path / "jmeter.log").read_text())[0]
    theirs = [float(text) for text in re.findall(r"([\d.E-]+) \(\+", said)]
    ours = arrivals(paces(translated_of(timer() + sampler(), group=lasting(2)))[0])
    assert len(theirs) == 10
    assert ours == pytest.approx(theirs, abs=1e-6)
