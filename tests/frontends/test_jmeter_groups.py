"""prony jmeter: several thread groups, setUp and tearDown groups: who sends what, when, under which name."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.load import ClosedLoad, WholeRun
from prony_frontends import jmeter
from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.translate import JMeterPlan, of_tree
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import Served, explained, quick_desk
from tests.frontends.jmx_text import PLANS, element, flag, found, prop, repeated, sampler
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter


def group(
    name: str, below: str, threads: int = 1, loops: object = 1, more: str = "", tag: str = "ThreadGroup"
) -> str:
    inside = prop("ThreadGroup.num_threads", threads) + prop("ThreadGroup.ramp_time", 0) + repeated(loops)
    return (
        f'<{tag} guiclass="G" testclass="{tag}" testname="{name}">'
        f"{prop('ThreadGroup.on_sample_error', 'continue')}{inside}{more}</{tag}><hashTree>{below}</hashTree>"
    )


def scheduled(duration: object, delay: object = 0) -> str:
    return (
        flag("ThreadGroup.scheduler", True)
        + prop("ThreadGroup.duration", duration)
        + prop("ThreadGroup.delay", delay)
    )


def document(groups: str, serial: bool = False) -> bytes:
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2" properties="5.0" jmeter="5.6.3"><hashTree>
<TestPlan guiclass="G" testclass="TestPlan" testname="T">
{flag("TestPlan.serialize_threadgroups", serial)}</TestPlan>
<hashTree>{groups}</hashTree></hashTree></jmeterTestPlan>""".encode()


def plan(groups: str, serial: bool = False) -> JMeterPlan:
    return of_tree(jmx.parse(document(groups, serial), "p.jmx"), PLANS / "p.jmx", {})


def at(port: int, path: str) -> str:
    return sampler(path, prop("HTTPSampler.port", port), name=path.strip("/"))


def shop(port: int) -> str:
    """Five groups, in an order that JMeter does not keep."""
    return (
        group("bye", at(port, "/bye"), 1, 2, tag="PostThreadGroup")
        + group("browse", at(port, "/a") + at(port, "/b"), 3, 4)
        + group("prepare", at(port, "/s"), 2, 1, tag="SetupThreadGroup")
        + group("buy", at(port, "/c"), 2, 3, scheduled(60, 1))
        + group("prepare", at(port, "/s2"), 1, 2, tag="SetupThreadGroup")
    )


EXPECTED = {
    ("prepare 1-1", "s"): 1, ("prepare 1-2", "s"): 1, ("prepare 2-1", "s2"): 2,
    **{(f"browse 1-{n}", label): 4 for n in (1, 2, 3) for label in "ab"},
    ("buy 2-1", "c"): 3, ("buy 2-2", "c"): 3, ("bye 1-1", "bye"): 2,
}  # fmt: skip


def test_groups_become_populations_with_scenarios_of_their_own() -> None:
    ends = scheduled(20, 3)
    made = plan(
        group("a", sampler("/a"), 3, 4, prop("ThreadGroup.none", "")) + group("b", sampler("/b"), 2, -1, ends)
    )
    load = made.translated.trial
    assert isinstance(load.load, ClosedLoad)
    assert load.measured == WholeRun()
    a, b = load.load.populations
    assert (a.name, a.users, a.iterations_per_user, a.duration_s, a.scenarios) == ("a", 3, 4, None, ("a",))
    assert (b.users, b.start_s, b.duration_s, b.iterations_per_user) == (2, 3, 20, None)
    assert [walk.name for walk in load.workload.scenarios] == ["a", "b"]
    assert made.delay_s == 0
    assert [(crew.label, crew.users, crew.start_s) for crew in made.thread_groups] == [
        ("a", 3, 0),
        ("b", 2, 3),
    ]


def test_groups_of_one_name_are_told_apart_in_the_plan_and_not_in_the_log() -> None:
    made = plan(group("g", sampler()) + group("g", sampler()))
    assert [walk.name for walk in made.translated.trial.workload.scenarios] == ["g", "g (2)"]
    assert [crew.label for crew in made.thread_groups] == ["g", "g"]


def test_what_comes_before_and_after_is_explained_and_read_again() -> None:
    made = plan(shop(8080)).translated
    assert made.trial.before is not None
    assert made.trial.after is not None
    assert [one.name for one in made.trial.before.loads.populations] == ["prepare", "prepare (2)"]
    again = explained(made)
    assert (again.before, again.after, again.load) == (made.trial.before, made.trial.after, made.trial.load)
    assert again.workload.scenarios == made.trial.workload.scenarios


def test_names_of_one_group_are_not_known_in_another() -> None:
    rows = element("CSVDataSet", prop("filename", "people.csv"), flag("recycle", True))
    ours = plan(group("rows", rows + sampler("/${name}")) + group("none", sampler("/plain")))
    load = ours.translated.trial.load
    assert isinstance(load, ClosedLoad)
    assert [one.feeders for one in load.populations] == [("rows1",), ()]
    notes = plan(
        group("rows", rows + sampler("/${name}")) + group("none", sampler("/${name}"))
    ).translated.notes
    assert noted(notes, "no_request", "'page'")


def test_a_variable_of_an_extractor_belongs_to_the_groups_that_use_it() -> None:
    ours = plan(
        group("a", sampler("/", below=found("id", "(.)")) + sampler("/${id}")) + group("b", sampler())
    )
    a, b = ours.translated.trial.workload.scenarios
    assert (list(a.variables), list(b.variables)) == (["id"], [])


def test_groups_one_after_the_other_begin_when_the_time_of_the_one_before_is_over() -> None:
    both = group("a", sampler(), 1, -1, scheduled(10, 2)) + group("b", sampler(), 1, 5, scheduled(20, 1))
    load = plan(both, serial=True).translated.trial.load
    assert isinstance(load, ClosedLoad)
    assert [one.start_s for one in load.populations] == [2, 13]
    with refuses("unsupported", "ThreadGroup 'a'"):
        plan(group("a", sampler()) + group("b", sampler()), serial=True)


CSV = element("CSVDataSet", prop("filename", "people.csv"), flag("recycle", True))
COUNTER = element("CounterConfig", prop("CounterConfig.name", "n"), prop("CounterConfig.incr", 1))
COOKIES = element("CookieManager")
SHARED_RATE = element("ConstantThroughputTimer", prop("throughput", 60), prop("calcMode", 1))
SET_UP = group("a", sampler(), tag="SetupThreadGroup")


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        (group("a", sampler()) + group("b", sampler(), loops=0), "no loops"),
        (
            group("a", sampler()) + element("OpenModelThreadGroup", below=sampler()),
            "an open model and other",
        ),
        (CSV + SET_UP + group("b", sampler()), "rows that the load goes on"),
        (
            group("a", CSV + sampler()) + group("b", CSV.replace(">true<", ">false<") + sampler()),
            "a second data set of people.csv",
        ),
        (
            COUNTER + group("a", sampler("/${n}"), tag="SetupThreadGroup") + group("b", sampler("/${n}")),
            "continue from setUp to the load",
        ),
        (group("a", COOKIES + sampler()) + group("b", sampler()), "cookie rules"),
        (
            group("a", SHARED_RATE + sampler()) + group("b", sampler()),
            "ConstantThroughputTimer 'it' is not supported",
        ),
        (
            group("a", sampler(), 1, 3, flag("ThreadGroup.same_user_on_next_iteration", False))
            + group("b", sampler(), 1, 3),
            "next to a group with lasting users",
        ),
        (SET_UP, "a thread group that is enabled"),
    ],
)  # fmt: skip
def test_what_groups_share_in_jmeter_and_not_here_is_refused(groups: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        plan(groups)


def rows_of(log: Path) -> list[dict[str, str]]:
    with log.open(newline="") as file:
        return list(csv.DictReader(file))


def sent(rows: list[dict[str, str]]) -> Counter[tuple[str, str]]:
    return Counter((row["threadName"], row["label"]) for row in rows)


def test_all_groups_send_what_they_should_in_order_and_have_their_rows(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served, log = serve(), tmp_path / "out.jtl"
    file = tmp_path / "shop.jmx"
    file.write_bytes(document(shop(served.port)))
    context, out, _ = quick_desk()
    assert jmeter.run(["-n", "-t", str(file), "-l", str(log)], context) == 0
    rows = rows_of(log)
    assert sent(rows) == EXPECTED
    assert re.search(r"summary =     36 in .* Err:     0 \(0\.00%\)", out.getvalue())
    for row in rows:
        most = {"s": 2, "s2": 1, "a": 3, "b": 3, "c": 2, "bye": 1}[row["label"]]
        assert 1 <= int(row["grpThreads"]) <= most
        assert int(row["grpThreads"]) <= int(row["allThreads"]) <= 5
    asked = [line.split()[1] for line in served.recorded().split(b"\r\n") if line.startswith(b"GET ")]
    assert Counter(asked) == {b"/s": 2, b"/s2": 2, b"/a": 12, b"/b": 12, b"/c": 6, b"/bye": 2}
    assert set(asked[:4]) == {b"/s", b"/s2"}
    assert asked[-2:] == [b"/bye", b"/bye"]


@needs_jmeter
@pytest.mark.parametrize("serial", [False, True])
def test_jmeter_itself_sends_the_same_under_the_same_names(
    serve: Callable[..., Served], tmp_path: Path, serial: bool
) -> None:
    theirs, ours = serve(), serve()
    logs = tmp_path / "theirs.jtl", tmp_path / "ours.jtl"
    for served, log in zip((theirs, ours), logs, strict=True):
        groups = shop(served.port)
        if serial:
            groups = group("first", at(served.port, "/a"), 2, -1, scheduled(1))
            groups += group("then", at(served.port, "/b"), 2, 3)
        (tmp_path / f"{log.stem}.jmx").write_bytes(document(groups, serial))
    run_jmeter(["-n", "-t", str(tmp_path / "theirs.jmx"), "-l", str(logs[0])], tmp_path, cwd=tmp_path)
    context, _, _ = quick_desk()
    assert jmeter.run(["-n", "-t", str(tmp_path / "ours.jmx"), "-l", str(logs[1])], context) == 0
    counted = [sent(rows_of(log)) for log in logs]
    if serial:
        counted = [Counter({key: n for key, n in one.items() if key[1] == "b"}) for one in counted]
        assert counted[0] == {("then 2-1", "b"): 3, ("then 2-2", "b"): 3}
    assert counted[0] == counted[1]
