"""prony jmeter: what a thread does after a failed request, held against JMeter itself."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault, UsageError
from prony_frontends import jmeter
from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.translate import of_tree
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import Front, Served, explained, quick_desk
from tests.frontends.jmx_text import PLANS, document, element, flag, load_of, prop, repeated, sampler
from tests.frontends.real_jmeter import BOTH, needs_jmeter, run_by, run_jmeter
from tests.frontends.test_jmeter_groups import document as groups_of
from tests.frontends.test_jmeter_groups import group as thread_group
from tests.frontends.test_jmeter_groups import scheduled

FAILS = element(
    "ResponseAssertion",
    f'<collectionProp name="Asserion.test_strings">{prop("1", "nowhere")}</collectionProp>',
    prop("Assertion.test_field", "Assertion.response_data"), prop("Assertion.test_type", 2),
)  # fmt: skip
"""Below a sampler: its response is wrong."""


def group(mode: str, threads: int = 1, loops: int = 4) -> str:
    return (
        prop("ThreadGroup.on_sample_error", mode) + prop("ThreadGroup.num_threads", threads) + repeated(loops)
    )


def walk(port: int) -> str:
    """a, b, three times c, which fails, and d."""

    def one(name: str, below: str = "") -> str:
        return sampler(f"/{name}", prop("HTTPSampler.port", port), below=below, name=name)

    thrice = element(
        "LoopController", flag("LoopController.continue_forever", True), prop("LoopController.loops", 3),
        below=one("c", FAILS),
    )  # fmt: skip
    return one("a") + one("b") + thrice + one("d")


SENT = {
    "continue": "a+b+c-c-c-d+" * 4, "startnextloop": "a+b+c-" * 4, "stopthread": "a+b+c-",
    "stoptest": "a+b+c-", "stoptestnow": "a+b+c-",
}  # fmt: skip


def rows(log: Path) -> str:
    """Labels, each with + or -."""
    found = csv.DictReader(io.StringIO(log.read_text()))
    return "".join(row["label"] + {"true": "+", "false": "-"}[row["success"]] for row in found)


@pytest.mark.parametrize("mode", SENT)
def test_what_is_sent_after_an_error(mode: str, serve: Callable[..., Served], tmp_path: Path) -> None:
    served, plan, log = serve(), tmp_path / "p.jmx", tmp_path / "out.jtl"
    plan.write_bytes(document(walk(served.port), group=group(mode)))
    jmeter.run(["-n", "-t", str(plan), "-l", str(log)], quick_desk()[0])
    assert rows(log) == SENT[mode]


def test_a_request_without_a_response_is_an_error_too(serve: Callable[..., Served], tmp_path: Path) -> None:
    served, plan, log = serve("--reset", "1"), tmp_path / "p.jmx", tmp_path / "out.jtl"
    plan.write_bytes(document(walk(served.port), group=group("startnextloop")))
    jmeter.run(["-n", "-t", str(plan), "-l", str(log)], quick_desk()[0])
    assert rows(log) == "a-" * 4


def both(port: int, strict: str, patient: str) -> bytes:
    """A group that an error lets end the run, beside one that goes on after errors."""
    one = prop("HTTPSampler.port", port)
    stops = prop("ThreadGroup.on_sample_error", "stoptest")
    wait = element("ConstantTimer", prop("ConstantTimer.delay", 100))
    return groups_of(
        thread_group("strict", wait + sampler("/s", one, strict, name="s"), 1, 3).replace(
            prop("ThreadGroup.on_sample_error", "continue"), stops
        )
        + thread_group("patient", wait + sampler("/p", one, patient, name="p"), 1, 3)
    )


def ran(who: str, plan: Path, log: Path) -> str:
    """The rows of a run by JMeter or Prony, in any order."""
    argv = ["-n", "-t", str(plan), "-l", str(log)]
    run_by(who, argv, plan.parent)
    return "".join(sorted(re.findall(r"\w+[+-]", rows(log))))


@BOTH
def test_errors_of_a_group_that_goes_on_end_no_run(
    who: str, serve: Callable[..., Served], tmp_path: Path
) -> None:
    plan = tmp_path / "p.jmx"
    plan.write_bytes(both(serve().port, strict="", patient=FAILS))
    assert ran(who, plan, tmp_path / "out.jtl") == "p-" * 3 + "s+" * 3


@BOTH
def test_an_error_ends_the_run_for_the_others_too(
    who: str, serve: Callable[..., Served], tmp_path: Path
) -> None:
    plan = tmp_path / "p.jmx"
    content = both(serve().port, strict=FAILS, patient="")
    endless = repeated(-1) + scheduled(60, 0)
    before = repeated(3).encode()
    at = content.rindex(before)
    plan.write_bytes(content[:at] + endless.encode() + content[at + len(before) :])
    found = ran(who, plan, tmp_path / "out.jtl")
    # The other one sends no more than what is under way then.
    assert re.fullmatch(r"(p\+){0,3}s-", found), found


def test_only_a_group_that_says_so_lets_an_error_end_the_run() -> None:
    made = of_tree(jmx.parse(both(80, "", ""), "p.jmx"), PLANS / "p.jmx", {}).translated
    assert [step.ends_run_on_error for step in made.trial.workload.all_steps] == [True, False]
    assert explained(made).workload.scenarios == made.trial.workload.scenarios


def in_set_up(port: int, mode: str) -> bytes:
    """A log-in that fails, before three threads that go on."""
    one = prop("HTTPSampler.port", port)
    login = thread_group("log in", sampler("/login", one, FAILS, name="login"), tag="SetupThreadGroup")
    said = prop("ThreadGroup.on_sample_error", "continue")
    return groups_of(
        login.replace(said, prop("ThreadGroup.on_sample_error", mode))
        + thread_group("shop", sampler("/a", one, name="a"), 3)
        + thread_group("bye", sampler("/bye", one, name="bye"), tag="PostThreadGroup")
    )


SENT_AFTER = {"continue": "a+a+a+bye+login-", "stoptest": "login-", "stoptestnow": "login-"}


@needs_jmeter
@pytest.mark.parametrize("mode", SENT_AFTER)
def test_jmeter_itself_begins_no_load_after_it_was_stopped(
    mode: str, serve: Callable[..., Served], tmp_path: Path
) -> None:
    served, plan = serve(), tmp_path / "p.jmx"
    plan.write_bytes(in_set_up(served.port, mode))
    assert ran("theirs", plan, tmp_path / "out.jtl") == SENT_AFTER[mode]


@pytest.mark.parametrize("mode", ["stoptest", "stoptestnow"])
def test_an_error_in_set_up_may_keep_the_load_from_beginning(
    mode: str, serve: Callable[..., Served], tmp_path: Path, front: Front
) -> None:
    served, plan, log = serve(), tmp_path / "p.jmx", tmp_path / "out.jtl"
    plan.write_bytes(in_set_up(served.port, mode))
    with pytest.raises(EnvironmentFault, match="first failed"):
        jmeter.run(["-n", "-t", str(plan), "-l", str(log)], front.context())
    assert rows(log) == SENT_AFTER[mode]
    assert served.ended()["requests"] == 1
    assert "a failed request ends all sending" in front.err.getvalue()


def test_an_error_in_set_up_is_otherwise_passed_over(serve: Callable[..., Served], tmp_path: Path) -> None:
    plan = tmp_path / "p.jmx"
    plan.write_bytes(in_set_up(serve().port, "continue"))
    assert ran("ours", plan, tmp_path / "out.jtl") == SENT_AFTER["continue"]


def test_tear_down_after_a_stopped_test_is_said() -> None:
    stops = prop("ThreadGroup.on_sample_error", "stoptest")
    said = prop("ThreadGroup.on_sample_error", "continue")
    groups = thread_group("a", sampler()).replace(said, stops)
    groups += thread_group("bye", sampler(), tag="PostThreadGroup")
    for tells, runs in ((True, False), (False, True)):
        content = groups_of(groups).replace(
            b"</TestPlan>", flag("TestPlan.tearDown_on_shutdown", tells).encode() + b"</TestPlan>"
        )
        notes = of_tree(jmx.parse(content, "p.jmx"), PLANS / "p.jmx", {}).translated.notes
        assert noted(notes, "tear_down") == runs
    by_handler = thread_group("a", sampler(below=handler(2))) + thread_group(
        "bye", sampler(), tag="PostThreadGroup"
    )
    notes = of_tree(jmx.parse(groups_of(by_handler), "p.jmx"), PLANS / "p.jmx", {}).translated.notes
    assert noted(notes, "tear_down")


def test_a_word_that_jmeter_does_not_know() -> None:
    with pytest.raises(UsageError, match="one of continue, startnextloop, stopthread"):
        load_of(sampler(), group=group("explode"))


def handler(action: int) -> str:
    return element("ResultAction", f'<intProp name="OnError.action">{action}</intProp>')


@pytest.mark.parametrize(
    ("number", "mode"), [(0, "continue"), (1, "stopthread"), (2, "stoptest"), (4, "startnextloop")]
)
@pytest.mark.parametrize("where", ["in the group", "beside it"])
def test_a_handler_for_all_requests_says_what_a_group_says(number: int, mode: str, where: str) -> None:
    inside, beside = (handler(number), "") if where == "in the group" else ("", handler(number))
    made = load_of(inside + walk(80), beside, group=group("continue"))
    assert made == load_of(walk(80), group=group(mode))


BELOW, BESIDE, OF_GROUP = "below the sampler", "in its loop", "in the group"
HANDLED = {
    (BELOW, 1): "a+c-", (BELOW, 2): "a+c-", (BELOW, 3): "a+c-", (BELOW, 4): "a+c-a+c-",
    (BELOW, 5): "a+c-c-c-f-d+" * 2, (BELOW, 6): "a+c-f-d+" * 2,
    (BESIDE, 4): "a+c-a+c-", (BESIDE, 5): "a+c-c-c-f-d+" * 2, (BESIDE, 6): "a+c-f-d+" * 2,
    (OF_GROUP, 5): "a+c-c-c-f-" * 2, (OF_GROUP, 6): "a+c-f-",
}  # fmt: skip
"""Where a handler stands, and its action -> what is sent in two iterations."""


def with_handler(port: int, where: str, number: int) -> bytes:
    """a; three times c, which fails, and e; f, which fails, too; d."""

    def one(name: str, below: str = "") -> str:
        return sampler(f"/{name}", prop("HTTPSampler.port", port), below=below, name=name)

    at = {place: handler(number) if place == where else "" for place in (BELOW, BESIDE, OF_GROUP)}
    thrice = element(
        "LoopController", flag("LoopController.continue_forever", True), prop("LoopController.loops", 3),
        below=one("c", FAILS + at[BELOW]) + one("e") + at[BESIDE],
    )  # fmt: skip
    inside = one("a") + thrice + one("f", FAILS) + one("d") + at[OF_GROUP]
    return document(inside, group=group("continue", loops=2))


@BOTH
@pytest.mark.parametrize(("where", "number"), HANDLED)
def test_a_handler_for_some_requests(
    who: str, where: str, number: int, serve: Callable[..., Served], tmp_path: Path
) -> None:
    plan, log = tmp_path / "p.jmx", tmp_path / "out.jtl"
    plan.write_bytes(with_handler(serve().port, where, number))
    argv = ["-n", "-t", str(plan), "-l", str(log)]
    run_by(who, argv, tmp_path)
    assert rows(log) == HANDLED[where, number]


@BOTH
def test_a_sampler_that_sends_nothing_has_its_handler_too(
    who: str, serve: Callable[..., Served], tmp_path: Path
) -> None:
    """Its path has a variable without a value."""
    served, plan = serve(), tmp_path / "p.jmx"
    port = prop("HTTPSampler.port", served.port)
    broken = sampler("/${nobody}", port, below=handler(4), name="broken")
    inside = sampler("/a", port, name="a") + broken + sampler("/b", port, name="b")
    plan.write_bytes(document(inside, group=group("continue", loops=2)))
    argv = ["-n", "-t", str(plan)]
    run_by(who, argv, tmp_path)
    served.ended()
    assert re.findall(rb"(?m)^GET (\S+)", served.recorded()) == [b"/a", b"/a"]


def test_a_request_has_one_action_after_an_error() -> None:
    for inside, mode in (
        (handler(1) + sampler(), "startnextloop"),
        (sampler(below=handler(1)), "startnextloop"),
        (sampler(below=handler(1) + handler(4)), "continue"),
        (handler(4) + sampler(below=handler(1)), "continue"),
        (handler(5) + handler(6) + sampler(), "continue"),
    ):
        with refuses("conflict", "ResultAction"):
            load_of(inside, group=group(mode))
    with pytest.raises(UsageError, match=r"OnError\.action from 0 to 6, found '9'"):
        load_of(sampler(below=handler(9)))
    with refuses("no_request", "ResultAction", "'broken'"):
        load_of(sampler("/a") + sampler("/${nobody}", below=handler(2), name="broken"))


@needs_jmeter
def test_jmeter_itself_heeds_a_handler(serve: Callable[..., Served], tmp_path: Path) -> None:
    served, plan, log = serve(), tmp_path / "p.jmx", tmp_path / "out.jtl"
    plan.write_bytes(document(handler(4) + walk(served.port), group=group("continue")))
    run_jmeter(["-n", "-t", str(plan), "-l", str(log)], tmp_path, cwd=tmp_path)
    assert rows(log) == SENT["startnextloop"]


@needs_jmeter
@pytest.mark.parametrize("mode", SENT)
def test_jmeter_itself_sends_the_same_after_an_error(
    mode: str, serve: Callable[..., Served], tmp_path: Path
) -> None:
    served, plan, log = serve(), tmp_path / "p.jmx", tmp_path / "out.jtl"
    plan.write_bytes(document(walk(served.port), group=group(mode)))
    run_jmeter(["-n", "-t", str(plan), "-l", str(log)], tmp_path, cwd=tmp_path)
    assert rows(log) == SENT[mode]
