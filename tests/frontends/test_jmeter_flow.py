"""prony jmeter: Flow Control Actions that go on elsewhere, loops that end with a failed request or by the
clock, and whether the last request was right: held against JMeter itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.load import WholeRun
from prony.plan.step import Block
from prony_frontends import jmeter
from prony_frontends.jmeter.arguments import OwnSettings
from prony_frontends.jmeter.functions import LONGEST_S
from tests.entries import requests
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import explained, quick_desk
from tests.frontends.jmx_text import (
    document,
    element,
    flag,
    load_of,
    prop,
    repeated,
    sampler,
    translated_of,
)
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter
from tests.frontends.site import Response, site
from tests.frontends.test_jmeter_actions import action
from tests.frontends.test_jmeter_blocks import condition, looped

NEXT_ITERATION, NEXT_ROUND, BREAK = 3, 4, 5
ONE = prop("ThreadGroup.num_threads", 1)
RESPONSES = {
    path: Response()
    for path in ("/one", "/l1", "/l2", "/b1", "/b2", "/w", "/fine", "/yes", "/end", "/r", "/after")
}
ROUND = ["/one", "/l1", "/l2", "/l1", "/l1", "/l2", "/b1", "/b2", "/b1", "/w", "/missing", "/fine", "/yes"]
SENT = [*ROUND, *ROUND, "/end"]
"""The first iteration is left before its end, the thread in the second."""


def loop_while(text: str, below: str, name: str = "While") -> str:
    return element("WhileController", prop("WhileController.condition", text), below=below, name=name)


def is_(variable: str, value: object, below: str) -> str:
    return condition(f"${{__jexl3(&quot;${{{variable}}}&quot; == &quot;{value}&quot;)}}", below)


def counter(name: str) -> str:
    return element(
        "CounterConfig", prop("CounterConfig.start", 1), prop("CounterConfig.incr", 1),
        prop("CounterConfig.name", name), flag("CounterConfig.per_user", True),
    )  # fmt: skip


def walk(port: int) -> str:
    right = "${JMeterThread.last_sample_ok}"
    return (
        element("ConfigTestElement", prop("HTTPSampler.port", port))
        + counter("n")
        + sampler("/one")
        + looped(3, sampler("/l1") + is_("__jm__L__idx", 1, action(NEXT_ROUND)) + sampler("/l2"), "L")
        + looped(3, sampler("/b1") + is_("__jm__B__idx", 1, action(BREAK)) + sampler("/b2"), "B")
        + loop_while("", sampler("/w") + sampler("/missing"))
        + loop_while("LAST", sampler("/never"))
        + condition(right, sampler("/no"))
        + sampler("/fine")
        + condition(right, sampler("/yes"))
        + is_("n", 1, action(NEXT_ITERATION))
        + sampler("/end")
        + action(0)
        + sampler("/over")
    )


def test_a_thread_goes_on_where_it_is_told_to(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        (tmp_path / "p.jmx").write_bytes(document(walk(served.port), group=ONE + repeated(3)))
        jmeter.run(["-n", "-t", str(tmp_path / "p.jmx")], quick_desk()[0])
        assert served.paths == SENT


@needs_jmeter
def test_jmeter_itself_goes_on_there(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        (tmp_path / "p.jmx").write_bytes(document(walk(served.port), group=ONE + repeated(3)))
        run_jmeter(["-n", "-t", str(tmp_path / "p.jmx")], tmp_path)
        assert served.paths == SENT


def timed(port: int) -> bytes:
    pause = element("ConstantTimer", prop("ConstantTimer.delay", 50))
    for_a_second = element("RunTime", prop("RunTime.seconds", 1), below=sampler("/r", below=pause))
    port_of = element("ConfigTestElement", prop("HTTPSampler.port", port))
    return document(port_of + for_a_second + sampler("/after"), group=ONE + repeated(1))


def test_a_runtime_controller_ends_by_the_clock(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        (tmp_path / "p.jmx").write_bytes(timed(served.port))
        jmeter.run(["-n", "-t", str(tmp_path / "p.jmx")], quick_desk()[0])
        assert served.paths[-1] == "/after"
        assert set(served.paths[:-1]) == {"/r"}
        assert len(served.paths) > 3


@needs_jmeter
def test_jmeter_itself_ends_it_by_the_clock(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        (tmp_path / "p.jmx").write_bytes(timed(served.port))
        run_jmeter(["-n", "-t", str(tmp_path / "p.jmx")], tmp_path)
        assert served.paths[-1] == "/after"
        assert set(served.paths[:-1]) == {"/r"}
        assert len(served.paths) > 3


def test_plans_that_go_on_elsewhere_can_be_explained() -> None:
    made = translated_of(walk(80), group=ONE + repeated(3))
    assert explained(made).workload == made.trial.workload
    assert noted(made.notes, "stopped_thread")


def test_a_runtime_controller_without_a_time_is_not_walked() -> None:
    made = translated_of(element("RunTime", prop("RunTime.seconds", 0), below=sampler("/r")) + sampler("/a"))
    assert [step.path for step in requests(made.trial.workload.steps)] == ["/a"]


def test_stopping_all_threads_is_refused() -> None:
    all_threads = action(0).replace('target">0<', 'target">2<')
    with refuses("unsupported", "TestAction"):
        load_of(sampler() + all_threads)
    with pytest.raises(UsageError, match=r"TestAction.*5, found 9"):
        load_of(sampler() + action(9))


ENDLESS = {
    "a loop": looped(-1, sampler("/x"), "L"),
    "a while": loop_while("true", sampler("/x")),
    "until one fails": loop_while("", sampler("/x")),
    "within a controller": element("GenericController", below=looped(-1, sampler("/x"), "L")),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_a_loop_without_an_end_in_a_group_with_one(case: str) -> None:
    """The group then goes on until Ctrl-C, or for --duration."""
    made = translated_of(sampler("/login") + ENDLESS[case], group=repeated(1))
    assert made.trial.measured == WholeRun(duration_s=LONGEST_S, iterations_per_user=1)
    assert noted(made.notes, "no_end")
    given = translated_of(
        sampler("/login") + ENDLESS[case], group=repeated(1), own_settings=OwnSettings(duration_s=7.0)
    )
    assert given.trial.measured == WholeRun(duration_s=7.0, iterations_per_user=1)


def test_one_thread_never_waits_for_itself() -> None:
    alone = element("CriticalSectionController", prop("CriticalSectionController.lockName", "x"),
                    below=sampler("/x"))  # fmt: skip
    assert [step.path for step in requests(load_of(alone, group=ONE).workload.steps)] == ["/x"]
    with refuses("unsupported", "CriticalSectionController"):
        load_of(alone, group=prop("ThreadGroup.num_threads", 2))


def test_what_nothing_asks_for_is_not_noted() -> None:
    (step,) = load_of(sampler("/x")).workload.steps
    assert not isinstance(step, Block)
    assert not step.capture
