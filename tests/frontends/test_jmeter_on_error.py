"""prony jmeter: what a thread does after a failed request, held against JMeter itself."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.evidence.engine import IntervalRow
from prony.frontends import jmeter
from prony.frontends.base import Refused
from prony.frontends.jmeter import Summariser, jmx
from prony.frontends.jmeter.translate import of_tree
from tests.frontends.conftest import Served, quick_desk
from tests.frontends.jmx_text import PLANS, document, element, flag, load_of, prop, repeated, sampler
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter

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


def test_the_test_is_stopped_by_the_first_second_with_an_error() -> None:
    tree = jmx.parse(document(sampler(), group=group("stoptest", threads=2)), "p.jmx")
    made = of_tree(tree, PLANS / "p.jmx", {})
    assert made.stops_on_error
    summariser = Summariser(io.StringIO(), 2, made.stops_on_error)
    base = {"t_ms": 1000.0, "duration_ms": 1000.0, "completed": 3}
    summariser.row(IntervalRow.model_construct(**base, errors={}, in_window=True))  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        summariser.row(IntervalRow.model_construct(**base, errors={"expect_body": 1}))  # type: ignore[arg-type]


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


def test_other_handlers_are_refused() -> None:
    with pytest.raises(Refused, match="goes on with another loop"):
        load_of(handler(5) + sampler())
    with pytest.raises(Refused, match="ResultAction"):
        load_of(sampler(below=handler(1)))
    with pytest.raises(Refused, match="ResultAction"):
        load_of(handler(1) + sampler(), group=group("startnextloop"))


@needs_jmeter
def test_jmeter_itself_heeds_a_handler(serve: Callable[..., Served], tmp_path: Path) -> None:
    served, plan, log = serve(), tmp_path / "p.jmx", tmp_path / "out.jtl"
    plan.write_bytes(document(handler(4) + walk(served.port), group=group("continue")))
    run_jmeter(["-n", "-t", str(plan), "-l", str(log)], tmp_path, cwd=tmp_path)
    assert rows(log) == SENT["startnextloop"]


@needs_jmeter
@pytest.mark.parametrize("mode", ["startnextloop", "stopthread"])
def test_jmeter_itself_sends_the_same_after_an_error(
    mode: str, serve: Callable[..., Served], tmp_path: Path
) -> None:
    served, plan, log = serve(), tmp_path / "p.jmx", tmp_path / "out.jtl"
    plan.write_bytes(document(walk(served.port), group=group(mode)))
    run_jmeter(["-n", "-t", str(plan), "-l", str(log)], tmp_path, cwd=tmp_path)
    assert rows(log) == SENT[mode]
