"""prony jmeter: controllers, conditions, timers and variables do what they do in JMeter."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prony.plan.think import Think
from prony_frontends.base import Translated
from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.conditions import script
from prony_frontends.jmeter.functions import KnownValues, Text
from tests.frontends.codes import refuses
from tests.frontends.conftest import Served, offered
from tests.frontends.jmx_text import (
    document,
    element,
    flag,
    found,
    load_of,
    posted,
    prop,
    repeated,
    sampler,
    translated_of,
    variables,
)
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter

ROUNDS = 6


def share(name: str, style: int, value: float, each: bool, path: str) -> str:
    kind = "percentThroughput" if style else "maxThroughput"
    number = f"<FloatProperty><name>ThroughputController.percentThroughput</name><value>{value}</value>"
    held = (
        f"{number}<savedValue>0.0</savedValue></FloatProperty>"
        if style
        else prop(f"ThroughputController.{kind}", int(value))
    )
    style_of = f'<intProp name="ThroughputController.style">{style}</intProp>'
    per = flag("ThroughputController.perThread", each)
    return element("ThroughputController", style_of, per, held, below=sampler(path), name=name)


def condition(text: str, below: str, every: bool = False, script: bool = False) -> str:
    how = flag("IfController.useExpression", not script) + flag("IfController.evaluateAll", every)
    return element("IfController", prop("IfController.condition", text), how, below=below)


def looped(number: int, below: str, name: str, again: bool = True) -> str:
    count = prop("LoopController.loops", number) + flag("LoopController.continue_forever", again)
    return element("LoopController", count, below=below, name=name)


def simple(*paths: str) -> str:
    return element("GenericController", below="".join(map(sampler, paths)))


def everything(port: int) -> bytes:
    """Every controller whose order is certain, walked ROUNDS times by one user."""
    once = element("OnceOnlyController", below=sampler("/login"))
    turns = element(
        "InterleaveControl", '<intProp name="InterleaveControl.style">1</intProp>',
        below=sampler("/a") + simple("/b1", "/b2") + sampler("/c"),
    )  # fmt: skip
    inner = element("OnceOnlyController", below=sampler("/first")) + sampler("/round?i=${__jm__two__idx}")
    until = element(
        "WhileController", prop("WhileController.condition", '${__jexl3("${w}" != "done")}'),
        below=posted("/echo?while", "is it done", found("w", "(done)")),
    )  # fmt: skip
    inside = [
        element("CounterConfig", prop("CounterConfig.start", 1), prop("CounterConfig.incr", 1),
                prop("CounterConfig.name", "n"), flag("CounterConfig.per_user", False)),
        once,
        looped(2, inner, "two"),
        looped(2, sampler("/only-once"), "ending", again=False),
        turns,
        share("thirty", 1, 30.0, True, "/thirty"),
        share("two", 0, 2, False, "/two"),
        share("three", 0, 3, True, "/three"),
        posted("/echo?n", "v=${n};", found("v", r"v=(\d+)")),
        condition('${__jexl3(${v} > 3 &amp;&amp; "${v}" != "5")}', sampler("/big?v=${v}")),
        condition('"${v}" == "2"', sampler("/is-two"), script=True),
        element("TransactionController", below=sampler("/t1") + sampler("/t2?thread=${__threadNum}")),
        until,
        condition(
            '${__jexl3("${u}" != "stop")}',
            posted("/echo?stop", "stop", found("u", "(stop)")) + sampler("/behind"),
            every=True,
        ),
    ]  # fmt: skip
    defaults = element("ConfigTestElement", prop("HTTPSampler.port", port))
    return document(
        defaults + variables(w="start", u="go") + "".join(inside),
        group=repeated(ROUNDS) + prop("ThreadGroup.num_threads", 1),
    )


def expected() -> list[str]:
    """What JMeter sends for it, by iteration."""
    sent: list[str] = []
    turns = (["/a"], ["/b1", "/b2"], ["/c"])
    for n in range(1, ROUNDS + 1):
        sent += ["/login"] if n == 1 else []
        sent += ["/first", "/round?i=0", "/round?i=1"]
        sent += ["/only-once"] * 2 if n == 1 else []
        sent += turns[(n - 1) % 3]
        sent += ["/thirty"] if n in (2, 6) else []
        sent += ["/two"] if n <= 2 else []
        sent += ["/three"] if n <= 3 else []
        sent += ["/echo?n"]
        sent += [f"/big?v={n}"] if n in (4, 6) else []
        sent += ["/is-two"] if n == 2 else []
        sent += ["/t1", "/t2?thread=1"]
        sent += ["/echo?while"] if n == 1 else []
        sent += ["/echo?stop"] if n == 1 else []
    return sent


def targets(server: Served) -> list[str]:
    """What was asked for, in its order."""
    server.ended()
    return [line.decode() for line in re.findall(rb"(?:GET|POST) (\S+) HTTP/1.1\r\n", server.recorded())]


def plan_file(folder: Path, content: bytes) -> Path:
    file = folder / "plan.jmx"
    file.write_bytes(content)
    return file


def read(content: bytes, folder: Path) -> Translated:
    from prony_frontends import jmeter

    return jmeter.translate(["-n", "-t", str(plan_file(folder, content))])


def test_controllers_send_what_jmeter_sends(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    report = offered(read(everything(server.port), tmp_path))
    assert not report.totals.errors
    assert targets(server) == expected()


def by_jmeter(content: bytes, folder: Path) -> None:
    """The plan, run by JMeter itself."""
    run_jmeter(["-n", "-t", str(plan_file(folder, content))], folder)


@needs_jmeter
def test_jmeter_itself_sends_that(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    by_jmeter(everything(server.port), tmp_path)
    assert targets(server) == expected()


def sent(
    serve: Callable[..., Served], inside: str, beside: str = "", rounds: int = 1, users: int = 1
) -> list[str]:
    """What users who walk these elements so often ask for."""
    server = serve()
    defaults = element("ConfigTestElement", prop("HTTPSampler.port", server.port))
    group = repeated(rounds) + prop("ThreadGroup.num_threads", users)
    offered(translated_of(defaults + inside, beside, group))
    return targets(server)


def test_random_order_sends_each_once(serve: Callable[..., Served]) -> None:
    below = sampler("/a") + simple("/b1", "/b2") + sampler("/c")
    walked = sent(serve, element("RandomOrderController", below=below), rounds=40)
    rounds = [tuple(walked[at : at + 4]) for at in range(0, 160, 4)]
    assert {tuple(sorted(one)) for one in rounds} == {("/a", "/b1", "/b2", "/c")}
    assert len(set(rounds)) > 1
    assert all(one.index("/b2") == one.index("/b1") + 1 for one in rounds)


def test_random_sends_one_of_them(serve: Callable[..., Served]) -> None:
    style = '<intProp name="InterleaveControl.style">1</intProp>'
    below = sampler("/a") + simple("/b1", "/b2")
    walked = sent(serve, element("RandomController", style, below=below), rounds=60)
    assert walked.count("/a") + walked.count("/b1") == 60
    assert walked.count("/b1") == walked.count("/b2")
    assert 0 < walked.count("/a") < 60


def test_shares_of_all_threads_together(serve: Callable[..., Served]) -> None:
    part = share("quarter", 1, 25.0, False, "/quarter") + share("five", 0, 5, False, "/five")
    walked = sent(serve, sampler("/") + part, rounds=5, users=4)
    assert [walked.count(path) for path in ("/", "/quarter", "/five")] == [20, 5, 5]


def test_a_variable_keeps_the_value_of_the_last_iteration(serve: Callable[..., Served]) -> None:
    asked = condition('"${v}" == "yes"', sampler("/known"), script=True)
    walked = sent(serve, asked + posted("/echo", "yes", found("v", "(yes)")), rounds=3)
    assert walked == ["/echo", "/known", "/echo", "/known", "/echo"]


def test_random_variables_and_counters(serve: Callable[..., Served]) -> None:
    # fmt: off
    drawn = element("RandomVariableConfig", prop("variableName", "time"), prop("minimumValue", 3),
                    prop("maximumValue", 3), prop("outputFormat", ""))
    count = element("CounterConfig", prop("CounterConfig.start", 10), prop("CounterConfig.incr", 5),
                    prop("CounterConfig.name", "c"), prop("CounterConfig.end", "9223372036854775807"))
    # fmt: on
    walked = sent(serve, drawn + count + sampler("/${time}/${c}") + sampler("/again/${c}"), rounds=2)
    assert walked == ["/3/10", "/again/10", "/3/15", "/again/15"]


def test_rows_of_a_file_without_names(serve: Callable[..., Served], tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("ada;1\ngrace;2\n")
    data = element("CSVDataSet", prop("filename", rows), prop("variableNames", "who,number"),
                   prop("delimiter", ";"), flag("recycle", True), flag("stopThread", False))  # fmt: skip
    assert sent(serve, data + sampler("/${who}/${number}"), rounds=3) == ["/ada/1", "/grace/2", "/ada/1"]


def think(kind: str, **numbers: float) -> Think:
    return Think.model_validate({"kind": kind, **numbers})


def timer(tag: str, delay: object, spread: object = "") -> str:
    return element(tag, prop("ConstantTimer.delay", delay), prop("RandomTimer.range", spread))


def test_timers_wait_before_a_request_and_add_up() -> None:
    all_of_them = (
        timer("ConstantTimer", 100) + timer("UniformRandomTimer", 10, 50) + timer("PoissonRandomTimer", 5, 20)
        + timer("GaussianRandomTimer", 300, 10)
    )  # fmt: skip
    first, second, step = load_of(all_of_them + sampler()).workload.steps
    assert first.pause == think("uniform", min_ms=110, max_ms=160)  # type: ignore[union-attr]
    assert second.pause == think("poisson", mean_ms=20, offset_ms=5)  # type: ignore[union-attr]
    assert step.think_before == think("gaussian", mean_ms=300, stdev_ms=10)  # type: ignore[union-attr]
    (drawn,) = load_of(timer("ConstantTimer", "${__Random(5,9)}") + sampler()).workload.steps
    assert drawn.think_before == think("uniform", min_ms=5, max_ms=9)  # type: ignore[union-attr]


def test_the_first_request_waits_too(serve: Callable[..., Served]) -> None:
    server = serve()
    defaults = element("ConfigTestElement", prop("HTTPSampler.port", server.port))
    report = offered(translated_of(defaults + timer("ConstantTimer", 200) + sampler()))
    assert report.elapsed_ms >= 200
    assert server.ended()["requests"] == 1


@pytest.mark.parametrize(
    ("mode", "rate", "per"),
    [(0, 600, "user"), (1, 200, "user"), (2, 200, "user"), (3, 600, "run"), (4, 600, "run")],
)
def test_a_throughput_timer_is_a_pace(mode: int, rate: float, per: str) -> None:
    it = element("ConstantThroughputTimer", prop("throughput", 600), prop("calcMode", mode))
    group = prop("ThreadGroup.num_threads", 3)
    steps: Any = load_of(it + sampler("/a") + sampler("/b"), group=group).workload.steps
    paces = [entry.pace for entry in steps if getattr(entry, "pace", None)]
    assert [(pace.per_min, pace.per, pace.name) for pace in paces] == [(rate, per, "it")] * 2


def test_a_throughput_timer_spaces_all_requests_of_its_scope(serve: Callable[..., Served]) -> None:
    server = serve()
    defaults = element("ConfigTestElement", prop("HTTPSampler.port", server.port))
    it = element("ConstantThroughputTimer", prop("throughput", 1200), prop("calcMode", 3))
    group = repeated(2) + prop("ThreadGroup.num_threads", 2)
    report = offered(translated_of(defaults + it + sampler("/a") + sampler("/b"), group=group))
    assert server.ended()["requests"] == 8
    assert report.elapsed_ms >= 7 * 50 - 1


CONDITIONS: dict[str, object] = {
    "true": True, "1 == 1.0": True, '"1" == "1.0"': False, "2 &lt; 10": None, '"a" == "b" || 1 < 2': True,
    "!(1 == 2) && 3 >= 3": True, "not (1 eq 1) or 2 ne 2": False, '"abc".contains("b")': True,
    '"${x}" == "a" && true': {"left": "${x}", "op": "==", "right": "a"},
    '"${x}" == "a" || true': True,
    "'${x}'.equals('a')": {"left": "${x}", "op": "==", "right": "a"},
    'vars.get("x") != "a"': {"left": "${x}", "op": "!=", "right": "a"},
    "!(${x} < 5)": {"not": {"left": "${x}", "op": "<", "right": "5"}},
    "${x} > 1 && ${x} < 5 || ${x} == 9": {"any": [
        {"all": [{"left": "${x}", "op": ">", "right": "1"}, {"left": "${x}", "op": "<", "right": "5"}]},
        {"left": "${x}", "op": "==", "right": "9"}]},
    "${x}": {"left": "${x}", "op": "==", "right": "true"},
    "": None, "1": None, "1 ==": None, "(1 == 1": None, '"a" < "${x}"': None, "x == 1": None,
    "1 == 1 2": None, "a.b()": None, "${x} = 1": None, '"a\\"b" == "c"': None,
}  # fmt: skip


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions(text: str) -> None:
    values = KnownValues({}, variables={"x": Text.placeholder("x")})
    node = jmx.JmxNode("IfController", {}, 7, "p.jmx")
    wanted = CONDITIONS[text]
    if wanted is None:
        with refuses("unsupported", "IfController", line=7):
            script(text, node, values)
        return
    held = script(text, node, values)
    assert (
        held if isinstance(held, bool) else held.model_dump(mode="json", exclude_none=True, by_alias=True)
    ) == wanted


def test_a_loop_without_an_end_ends_with_the_clock() -> None:
    forever = element("LoopController", prop("LoopController.loops", -1), below=sampler("/a") + sampler("/b"))
    timed = flag("ThreadGroup.scheduler", True) + prop("ThreadGroup.duration", 1)
    (block,) = load_of(forever, group=timed).workload.steps
    assert block.loop is not None  # type: ignore[union-attr]


def test_a_new_user_needs_iterations_of_one_length() -> None:
    other = flag("ThreadGroup.same_user_on_next_iteration", False) + repeated(3)
    below = element("TransactionController", below=looped(3, sampler("/a") + sampler("/b"), "x"))
    assert load_of(below + sampler("/c"), group=other).connections.max_requests == 7
    with refuses("unsupported", "ThreadGroup"):
        load_of(element("OnceOnlyController", below=sampler()) + sampler(), group=other)
