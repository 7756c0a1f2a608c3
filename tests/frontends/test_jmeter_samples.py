"""prony jmeter: rows of transactions and of samplers that send nothing, as JMeter's log has them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from prony.plan.blocks import Condition, Loop
from prony.plan.response import Resources
from prony.plan.step import Block, Entry, Step
from prony.plan.workload import Scenario, Workload
from prony_frontends import jmeter
from prony_frontends.jmeter.chains import Chain
from prony_frontends.jmeter.marks import MARK
from prony_frontends.jmeter.outline import Style, outlines
from prony_frontends.jmeter.samples import DerivedSample, samples
from prony_frontends.request_log import LoggedRequest
from tests.frontends.conftest import Served, quick_desk
from tests.frontends.jmx_text import document, element, flag, prop, repeated, sampler
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter
from tests.frontends.test_jmeter_on_error import FAILS


def transaction(name: str, below: str, parent: bool = False, timers: bool = False) -> str:
    return element(
        "TransactionController", flag("TransactionController.parent", parent),
        flag("TransactionController.includeTimers", timers), below=below, name=name,
    )  # fmt: skip


def debug(name: str) -> str:
    return element("DebugSampler", name=name)


def plan(port: int) -> bytes:
    """Transactions within each other, one that is its samples' parent, and samplers that send nothing."""

    def one(name: str, below: str = "") -> str:
        return sampler(f"/{name}", prop("HTTPSampler.port", port), below=below, name=name)

    think = element("ConstantTimer", prop("ConstantTimer.delay", 20), gui="ConstantTimerGui")
    inside = (
        think
        + transaction("outer", one("a") + debug("debug") + transaction("inner", one("b")))
        + transaction("parent", one("c") + one("d", FAILS), parent=True)
        + transaction("fails", one("e", FAILS))
        + transaction("timers", one("f"), timers=True)
        + debug("last")
    )
    return document(inside, group=prop("ThreadGroup.num_threads", 2) + repeated(2))


def many(samples: int, failing: int) -> str:
    return f"Number of samples in transaction : {samples}, number of failing samples : {failing}"


LOOP = [
    ("a", "200", "OK", "text", "true"), ("debug", "200", "OK", "text", "true"),
    ("b", "200", "OK", "text", "true"), ("inner", "200", many(1, 0), "", "true"),
    ("outer", "200", many(3, 0), "", "true"), ("parent", "200", many(2, 1), "", "false"),
    ("c", "200", "OK", "text", "true"), ("d", "200", "OK", "text", "false"),
    ("e", "200", "OK", "text", "false"), ("fails", "", many(1, 1), "", "false"),
    ("f", "200", "OK", "text", "true"), ("timers", "200", many(1, 0), "", "true"),
    ("last", "200", "OK", "text", "true"),
]  # fmt: skip
"""What JMeter 5.6.3 writes for one loop."""


def rows(log: Path) -> dict[str, list[dict[str, str]]]:
    """By thread."""
    with log.open(newline="") as text:
        found: dict[str, list[dict[str, str]]] = {}
        for row in csv.DictReader(text):
            found.setdefault(row["threadName"], []).append(row)
        return found


def words(found: Sequence[dict[str, str]]) -> list[tuple[str, ...]]:
    names = ("label", "responseCode", "responseMessage", "dataType", "success")
    return [tuple(row[name] for name in names) for row in found]


def check(log: Path) -> None:
    threads = rows(log)
    assert set(threads) == {"G 1-1", "G 1-2"}
    for found in threads.values():
        assert words(found) == LOOP * 2
        for loop in (found[:13], found[13:]):
            at = {row["label"]: {k: int(v) for k, v in row.items() if v.isdigit()} for row in loop}
            for name, members in {"outer": "ab", "inner": "b", "parent": "cd", "timers": "f"}.items():
                assert at[name]["bytes"] == sum(at[member]["bytes"] for member in members)
                assert at[name]["sentBytes"] == sum(at[member]["sentBytes"] for member in members)
            assert at["timers"]["elapsed"] >= at["f"]["elapsed"]
            assert at["timers"]["IdleTime"] == at["debug"]["bytes"] == 0
            assert (loop[1]["URL"], loop[4]["URL"]) == ("null", "null")


def test_the_log_has_the_rows_of_jmeter(serve: Callable[..., Served], tmp_path: Path) -> None:
    served, file, log = serve(), tmp_path / "p.jmx", tmp_path / "out.jtl"
    file.write_bytes(plan(served.port))
    context, _, err = quick_desk()
    assert jmeter.run(["-n", "-t", str(file), "-l", str(log)], context) == 0
    check(log)
    assert "24 requests" in err.getvalue()


@needs_jmeter
def test_jmeter_itself_writes_these_rows(serve: Callable[..., Served], tmp_path: Path) -> None:
    served, file, log = serve(), tmp_path / "p.jmx", tmp_path / "out.jtl"
    file.write_bytes(plan(served.port))
    run_jmeter(["-n", "-t", str(file), "-l", str(log)], tmp_path, cwd=tmp_path)
    check(log)


def row(index: int, at_ms: int, user: int = 0) -> LoggedRequest:
    return LoggedRequest(
        start_unix_ms=1000 + at_ms, start_ns=at_ms * 10**6, latency_ns=0, service_ns=2 * 10**6,
        connect_ns=None, tls_ns=None, first_byte_ns=None, scenario="s", step=f"r{index}", step_index=index,
        method="GET", path="/", user=user, thread=0, status=200, error=None, bytes_out=1, bytes_in=10,
        body_bytes=5, users=1, branch=None, note=None,
    )  # fmt: skip


def labels(entries: Sequence[Entry], indexes: str) -> str:
    """What rows of requests 0, 1, … become: transactions with the number of their samples."""
    workload = Workload(scenarios=(Scenario(name="s", steps=tuple(entries)),))
    found = [row(int(index), 10 * at) for at, index in enumerate(indexes)]
    return " ".join(map(shown, samples(found, outlines(workload, {"p": Style(parent=True)}))))


def shown(one: DerivedSample | LoggedRequest) -> str:
    return f"{one.label}{one.message.split()[6][:-1]}" if isinstance(one, DerivedSample) else one.step


def of(name: str, *entries: Entry) -> Block:
    return Block(transaction=name, steps=entries)


GET = Step(path="/")
MAYBE = Condition(left="a", op="==", right="b")


def test_a_walk_begins_with_its_first_request() -> None:
    twice = Block(loop=Loop(count=2), steps=(GET,))
    assert labels([of("t", GET, twice)], "011011") == "r0 r1 r1 t3 r0 r1 r1 t3"
    assert labels([of("t", GET), GET], "0101") == "r0 t1 r1 r0 t1 r1"
    assert labels([of("t", GET)], "00") == "r0 t1 r0 t1"


def test_without_a_certain_first_request_a_walk_begins_where_an_earlier_one_comes_again() -> None:
    maybe = Block(condition=MAYBE, steps=(GET,))
    assert labels([of("t", maybe, GET)], "01101") == "r0 r1 t2 r1 t1 r0 r1 t2"
    loop = Block(loop=Loop(count=3), steps=(maybe,))
    assert labels([of("t", loop), GET], "0001001") == "r0 r0 r0 t3 r1 r0 r0 t2 r1"


def test_a_transaction_that_the_end_cuts_off_has_no_row() -> None:
    assert labels([of("t", GET, GET)], "010") == "r0 r1 t2 r0"
    assert labels([of("t", GET, Block(condition=MAYBE, steps=(GET,)))], "010") == "r0 r1 t2 r0 t1"


def test_rows_within_a_parent_come_after_it() -> None:
    assert labels([of("p", GET, of("t", GET))], "01") == "t1 p2 r0 r1"


def test_a_page_with_what_it_embeds_is_one_sample() -> None:
    page = Step(path="/", resources=Resources(into="a"))
    inner = Block(loop=Loop(each="b", element="d"), steps=(Step(path="/${d}"),))
    loop = Block(
        loop=Loop(each="a", element="c"),
        steps=(Step(path="/${c}", resources=Resources(into="b")), inner),
    )
    walk: list[Entry] = [of("t", page, loop), GET]
    # 0 the page, 1 what it embeds, 2 what that embeds, 3 another request
    assert labels(walk, "0121300111") == "r0 t1 r3 r0 t1 r0 t1"
    workload = Workload(scenarios=(Scenario(name="s", steps=tuple(walk)),))
    outlined = outlines(workload, {})
    found = [row(0, 0), row(0, 5, user=1), replace(row(1, 10), error="expect_status", status=404), row(2, 30)]
    whole, other = (one for one in samples(found, outlined) if isinstance(one, LoggedRequest))
    assert isinstance(whole, Chain)
    assert (whole.error, whole.service_ns, whole.bytes_in, whole.status) == (
        "expect_status", 32_000_000, 30, 200
    )  # fmt: skip
    assert (other.user, other.error) == (1, None)


def test_redirects_on_the_way_are_part_of_the_sample() -> None:
    workload = Workload(scenarios=(Scenario(name="s", steps=(Step(path="/", follow_redirects=5), GET)),))
    outlined = outlines(workload, {})
    way = [
        replace(row(0, 0), status=302, connect_ns=7),
        replace(row(0, 10), status=301),
        row(0, 20),
        row(1, 30),
    ]
    (whole, other) = samples(way, outlined)
    assert isinstance(whole, Chain)
    assert (whole.status, whole.start_ns, whole.service_ns, whole.connect_ns) == (200, 0, 22_000_000, 7)
    assert (whole.bytes_out, len(whole.parts), other) == (3, 3, row(1, 30))
    # One that was not followed is a failed response like others; one whose run ended is what there is.
    lost = replace(row(0, 0), status=302, error="expect_redirect")
    assert list(samples([lost, replace(row(0, 5), status=302)], outlined)) == [
        lost, replace(row(0, 5), status=302)
    ]  # fmt: skip


def test_another_scenario_is_left_as_it_is() -> None:
    assert [
        one.label if isinstance(one, DerivedSample) else one.step for one in samples([row(0, 0)], {})
    ] == ["r0"]


def test_a_sampler_without_a_request_has_its_row_wherever_it_is(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served, file, log = serve(), tmp_path / "p.jmx", tmp_path / "out.jtl"
    page = sampler("/", prop("HTTPSampler.port", served.port))
    lone = element("OnceOnlyController", below=debug("debug"))
    file.write_bytes(document(page + lone, group=prop("ThreadGroup.num_threads", 1) + repeated(2)))
    jmeter.run(["-n", "-t", str(file), "-l", str(log)], quick_desk()[0])
    assert [one["label"] for one in rows(log)["G 1-1"]] == ["page", "debug", "page"]


def test_transactions_of_one_name_are_kept_apart_by_their_elements() -> None:
    """One is the parent of its samples, the other is not; their rows say which is which."""
    walk = [of(f"t{MARK}1", GET), of(f"t{MARK}2", GET)]
    workload = Workload(scenarios=(Scenario(name="s", steps=tuple(walk)),))
    outlined = outlines(workload, {f"t{MARK}2": Style(parent=True)})
    found = samples([row(0, 0), row(1, 10)], outlined)
    seen = [(one.label, one.element) if isinstance(one, DerivedSample) else one.step for one in found]
    assert seen == ["r0", ("t", 1), ("t", 2), "r1"]
