"""prony jmeter: rows of CSV files, by data sets and `__CSVRead`, and functions that store what they find."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prony.errors import UsageError
from prony_frontends.jmeter import row_files
from tests.frontends.codes import refuses
from tests.frontends.conftest import Served, offered
from tests.frontends.jmx_text import (
    ARGUMENTS,
    document,
    element,
    flag,
    load_of,
    posted,
    prop,
    repeated,
    sampler,
    translated_of,
    variables,
)
from tests.frontends.real_jmeter import BOTH, offered_by
from tests.frontends.test_jmeter_blocks import targets

ROUNDS = 4


def data(name: str, names: str, mode: str = "all", recycle: bool = True, quoted: bool = False) -> str:
    return element(
        "CSVDataSet", prop("filename", name), prop("variableNames", names), prop("delimiter", ","),
        prop("shareMode", f"shareMode.{mode}"), flag("recycle", recycle), flag("stopThread", False),
        flag("quotedData", quoted), flag("ignoreFirstLine", False), prop("fileEncoding", "UTF-8"),
    )  # fmt: skip


def written(folder: Path) -> None:
    (folder / "pairs.csv").write_text('a,"1"\nb,2\nc,3\n')
    (folder / "few.csv").write_text("x\ny\n")
    (folder / "quoted.csv").write_text('"p,q",7\n"say ""so""",8\n')


def asked(path: str) -> str:
    """What stands behind a ? is a parameter, which is encoded."""
    where, _, value = path.partition("?")
    held = (
        prop("Argument.name", "v")
        + prop("Argument.metadata", "=")
        + prop("Argument.value", value)
        + flag("HTTPArgument.always_encode", True)
    )
    argument = f'<elementProp name="v" elementType="HTTPArgument">{held}</elementProp>'
    return sampler(where, ARGUMENTS.format(argument) if value else "")


def plan(port: int) -> bytes:
    """Rows and functions whose values are certain, for one user."""
    paths = [
        "/1/${__CSVRead(pairs.csv,0)}/${__CSVRead(pairs.csv,9)}",
        "/2/${__CSVRead(pairs.csv,0)}${__CSVRead(pairs.csv,next())}",
        "/3/${__CSVRead(few.csv,*own)}${__CSVRead(*own,0)}${__CSVRead(*own,next)}${__CSVRead(*own,0)}",
        "/4/${all}?${each}",
        "/5/${__intSum(2,3,-1,total)}/${total}/${__threadGroupName}/${__samplerName()}",
        "/6/${total}/${__Random(7,7,drawn)}${drawn}/${__TestPlanName}/${__longSum(1,1)}",
        "/7/${number}?${quoted}",
    ]
    inside = (
        element("ConfigTestElement", prop("HTTPSampler.port", port))
        + data("few.csv", "each", "thread", recycle=False)
        + data("pairs.csv", "all", "group")
        + data("quoted.csv", "quoted,number", quoted=True)
    )
    group = repeated(ROUNDS) + prop("ThreadGroup.num_threads", 1)
    return document(inside + "".join(asked(path) for path in paths), group=group)


def expected() -> list[str]:
    """What JMeter sends for it."""
    sent: list[str] = []
    few = ["x", "y"]
    for turn in range(ROUNDS):
        pair = "abc"[turn % 3]
        each = [*few, "%3CEOF%3E", "%3CEOF%3E"][turn]
        quoted = ["7?v=p%2Cq", "8?v=say+%22so%22"][turn % 2]
        sent += [f"/1/{pair}/", f"/2/{pair}", f"/3/{few[turn % 2]}{few[(turn + 1) % 2]}"]
        sent += [f"/4/{pair}?v={each}", "/5/4/4/G/page", "/6/4/77/plan.jmx/2", f"/7/{quoted}"]
    return sent


@BOTH
def test_rows_and_functions_send_what_jmeter_sends(
    who: str, serve: Callable[..., Served], tmp_path: Path
) -> None:
    server = serve()
    written(tmp_path)
    (tmp_path / "plan.jmx").write_bytes(plan(server.port))
    offered_by(who, tmp_path / "plan.jmx")
    assert targets(server) == expected()


def test_each_thread_has_a_row_until_it_asks_for_the_next(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    written(tmp_path)
    server = serve()
    inside = element("ConfigTestElement", prop("HTTPSampler.port", server.port)) + sampler(
        f"/${{__CSVRead({tmp_path}/pairs.csv,0)}}/${{__threadNum}}"
    )
    offered(translated_of(inside, group=repeated(5) + prop("ThreadGroup.num_threads", 3)))
    asked = targets(server)
    assert len(asked) == 15
    assert len(set(asked)) == 3  # a thread never leaves its row,
    assert {path[1] for path in asked} == set("abc")  # and no two have the same


def of_files(port: int, folder: Path) -> bytes:
    """Bodies that stand in files, which the rows of a data set name."""
    for name, text in (("first", '{"n": 1}\n'), ("second", 'two, "2" ${x}')):
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    (folder / "names.csv").write_text("first\nsecond\n")
    whole = f"${{__FileToString({folder}/${{file}}.txt,,)}}"
    inside = data("names.csv", "file") + "".join(posted(path, whole) for path in ("/1", "/2"))
    group = repeated(3) + prop("ThreadGroup.num_threads", 1)
    return document(element("ConfigTestElement", prop("HTTPSampler.port", port)) + inside, group=group)


BODIES = [body for body in (b'{"n": 1}\n', b'two, "2" ${x}', b'{"n": 1}\n') for _ in range(2)]


def bodies(served: Served) -> list[bytes]:
    served.ended()
    heads = re.finditer(rb"Content-Length: (\d+)\r\n.*?\r\n\r\n", served.recorded(), re.DOTALL)
    return [served.recorded()[head.end() : head.end() + int(head.group(1))] for head in heads]


@BOTH
def test_rows_name_the_files_of_bodies(who: str, serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    (tmp_path / "plan.jmx").write_bytes(of_files(server.port, tmp_path))
    offered_by(who, tmp_path / "plan.jmx")
    assert bodies(server) == BODIES


def refusal(inside: str) -> str:
    with pytest.raises(UsageError) as refused:
        load_of(inside + sampler())
    return str(refused.value)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("${__CSVRead(people.csv,x)}", "a column's number from 0"),
        ("${__CSVRead(nowhere.csv,0)}", "nowhere.csv"),
        ("${__CSVRead(*own,0)}", "*own"),
        ("${__CSVRead(,0)}", "names no file"),
        ("${__Random(1,2,who)}", "'who', a data set's column"),
        ("${v}${__Random(1,2,v)}", "'v', which is used before"),
        ("${__FileToString(${__UUID}.txt)}", "the name of a file that differs"),
        ("${__FileToString(${who}.txt)}", ".txt"),
    ],
)
def test_what_cannot_be_mapped_is_refused(path: str, says: str) -> None:
    before = data("people.csv", "who,town") + variables(v="0")
    assert says in refusal(before + sampler("/" + path))


def test_a_value_is_stored_by_samplers_only() -> None:
    timer = element("ConstantTimer", prop("ConstantTimer.delay", "${__Random(1,2,v)}"))
    with refuses("outside", "'v'"):
        load_of(timer + sampler())
    with refuses("outside", "__CSVRead"):
        load_of(variables(v="${__CSVRead(people.csv,0)}") + sampler())


def test_two_data_sets_of_one_file(tmp_path: Path) -> None:
    written(tmp_path)
    one = data(f"{tmp_path}/few.csv", "a")
    with refuses("shared", "few.csv"):
        load_of(one + data(f"{tmp_path}/few.csv", "b") + sampler())
    load_of(one + data(f"{tmp_path}/few.csv", "b", "thread") + sampler())


def of_two_groups(port: int, folder: Path) -> bytes:
    """Each draws twice from the same file, whose columns stand between two colons."""
    (folder / "four.csv").write_text("a::1\nb::2\nc::3\nd::4\n")
    rows = data("four.csv", "name,n").replace('"delimiter">,<', '"delimiter">::<')
    port_of = element("ConfigTestElement", prop("HTTPSampler.port", port))
    group = prop("ThreadGroup.num_threads", 1) + repeated(2)
    inside = rows + sampler("/${name}/${n}")
    other = element("ThreadGroup", group, below=inside, name="other")
    return document(inside, port_of + other, group)


@BOTH
def test_groups_take_turns_with_the_rows_of_a_file(
    who: str, serve: Callable[..., Served], tmp_path: Path
) -> None:
    server = serve()
    (tmp_path / "plan.jmx").write_bytes(of_two_groups(server.port, tmp_path))
    offered_by(who, tmp_path / "plan.jmx")
    assert sorted(targets(server)) == ["/a/1", "/b/2", "/c/3", "/d/4"]


def test_who_shares_rows_in_the_words_of_old_plans() -> None:
    for mode, words, per in (("thread", "Current thread", "user"), ("all", "All threads", "run")):
        old = data("people.csv", "who,town", mode).replace(f"shareMode.{mode}", words)
        (feeder,) = load_of(old + sampler("/${who}")).workload.feeders.values()
        assert feeder.per == per


def test_where_it_runs() -> None:
    (step,) = load_of(sampler("/${__machineName}")).workload.all_steps
    assert step.path == f"/{socket.gethostname()}"
    with refuses("unsupported", "__regexFunctionOfSomePlugin"):
        load_of(sampler("/${__regexFunctionOfSomePlugin(1)}"))


def test_rows_without_names_in_a_controller_are_nothing(tmp_path: Path) -> None:
    written(tmp_path)
    loop = element(
        "LoopController", prop("LoopController.loops", 2),
        below=data(str(tmp_path / "few.csv"), " ") + sampler("/a"),
    )  # fmt: skip
    made = load_of(loop + sampler("/b")).workload
    assert [step.path for step in made.all_steps] == ["/a", "/b"]


def test_progress_while_files_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "SILENT_S", 0.0)
    err = StringIO()
    rows: Any = row_files._Rows(made=None, stderr=err)  # type: ignore[arg-type]
    rows.logs = [(SimpleNamespace(path="o.jtl"), None)]
    assert sum(1 for _ in rows._counted("written", 600, range(600))) == 600
    assert err.getvalue().splitlines() == [
        "prony: o.jtl: 256 of 600 requests written", "prony: o.jtl: 512 of 600 requests written",
    ]  # fmt: skip
