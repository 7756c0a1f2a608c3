"""prony jmeter: User Parameters, and data sets in controllers, in other encodings and with other first lines:
what each thread sends, held against JMeter itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from prony.plan.step import Block
from prony_frontends import jmeter
from tests.frontends.codes import refuses
from tests.frontends.conftest import Served, explained, offered, quick_desk
from tests.frontends.jmx_text import (
    document,
    element,
    flag,
    found,
    load_of,
    prop,
    repeated,
    sampler,
    translated_of,
)
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter
from tests.frontends.test_jmeter_blocks import targets
from tests.frontends.test_jmeter_rows import asked, data


def listed(name: str, texts: Sequence[str]) -> str:
    held = "".join(prop(str(place), text) for place, text in enumerate(texts))
    return f'<collectionProp name="{name}">{held}</collectionProp>'


def user_parameters(names: Sequence[str], *users: Sequence[str], each_iteration: bool = False) -> str:
    columns = "".join(listed(str(place), user) for place, user in enumerate(users))
    return element(
        "UserParameters", listed("UserParameters.names", names),
        f'<collectionProp name="UserParameters.thread_values">{columns}</collectionProp>',
        flag("UserParameters.per_iteration", each_iteration), gui="UserParametersGui",
    )  # fmt: skip


def threads(count: int, loops: int = 1) -> str:
    return prop("ThreadGroup.num_threads", count) + repeated(loops)


def port_of(server: Served) -> str:
    return element("ConfigTestElement", prop("HTTPSampler.port", server.port))


def loop(times: int, below: str) -> str:
    inside = flag("LoopController.continue_forever", True) + prop("LoopController.loops", times)
    return element("LoopController", inside, below=below)


def walk() -> str:
    """Values that are certain for each of three threads, of which the third has those of the first."""
    each = user_parameters(["who", "town"], ["ada", "a b"], ["bob", "york"])
    same = user_parameters(["host"], ["h1"], ["h1"])
    counted = user_parameters(["n", "m"], ["${__counter(TRUE,)}", "-${n}"])
    once = user_parameters(["i"], ["${__counter(TRUE,)}"], each_iteration=True)
    inner = user_parameters(["k"], ["${__counter(TRUE,)}"], each_iteration=True)
    return (
        each + same + counted + once
        + sampler("/a/${who}/${host}/${n}${m}/${i}") + sampler("/b/${who}/${n}/${i}")
        + loop(2, inner + sampler("/c/${k}/${who}"))
    )  # fmt: skip


def expected(count: int, loops: int) -> list[str]:
    sent: list[str] = []
    for thread in range(count):
        who, number, in_loop = ("ada", "bob")[thread % 2], 0, 0
        for turn in range(1, loops + 1):
            sent.append(f"/a/{who}/h1/{number + 1}-{number + 1}/{turn}")
            sent.append(f"/b/{who}/{number + 2}/{turn}")
            sent += [f"/c/{in_loop + 1}/{who}", f"/c/{in_loop + 2}/{who}"]
            number, in_loop = number + 4, in_loop + 2
    return sorted(sent)


def test_each_thread_has_its_values(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    (tmp_path / "p.jmx").write_bytes(document(port_of(server) + walk(), group=threads(3, 2)))
    jmeter.run(["-n", "-t", str(tmp_path / "p.jmx")], quick_desk()[0])
    assert sorted(targets(server)) == expected(3, 2)


@needs_jmeter
def test_jmeter_itself_gives_them_the_same(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    (tmp_path / "p.jmx").write_bytes(document(port_of(server) + walk(), group=threads(3, 2)))
    run_jmeter(["-n", "-t", str(tmp_path / "p.jmx")], tmp_path)
    assert sorted(targets(server)) == expected(3, 2)


def test_values_that_differ_are_rows_of_the_plan() -> None:
    made = translated_of(user_parameters(["who"], ["a"], ["b"]) + sampler("/${who}"), group=threads(2))
    (feeder,) = made.trial.workload.feeders.values()
    assert (feeder.order, feeder.columns, feeder.rows) == ("unique_per_user", ("who",), (("a",), ("b",)))
    assert explained(made).workload == made.trial.workload


def test_functions_that_differ_are_chosen_by_the_thread() -> None:
    load = load_of(user_parameters(["x"], ["a${__Random(1,1)}"], ["b"]) + sampler("/${x}"), group=threads(2))
    first = load.workload.steps[0]
    assert isinstance(first, Block)
    assert first.condition is not None


def test_one_value_for_all_is_a_constant() -> None:
    load = load_of(user_parameters(["host"], ["127.0.0.1"]) + sampler("/${host}"))
    assert [step.path for step in load.workload.all_steps] == ["/127.0.0.1"]
    assert len(load.workload.steps) == 1
    assert not load.workload.feeders
    # an extractor changes it: then it is given anew before each request
    changed = load_of(user_parameters(["v"], ["1"]) + sampler("/${v}", below=found("v", "(.)")))
    assert isinstance(changed.workload.steps[0], Block)


def test_user_parameters_above_the_group(serve: Callable[..., Served]) -> None:
    server = serve()
    above = user_parameters(["who"], ["x"], ["y"]) + user_parameters(["t"], ["p"], ["q"], each_iteration=True)
    offered(translated_of(port_of(server) + sampler("/${who}${t}"), above, group=threads(2)))
    assert sorted(targets(server)) == ["/xp", "/yq"]


def data_sets(folder: Path) -> str:
    (folder / "turns.csv").write_text("t\n1\n2\n3\n4\n5\n")
    (folder / "few.csv").write_text("a\nb\n")
    (folder / "latin.csv").write_bytes("näme;x\nGröße;1\nÅ;2\n".encode("latin-1"))
    (folder / "titles.csv").write_text('"first name","b"\nada,"1\nbob,2"\n')
    (folder / "more.csv").write_text("a,b,c\nd,e,f\n")
    latin = data("latin.csv", "").replace(">UTF-8<", ">ISO-8859-1<").replace(">,<", ">;<")
    return (
        latin + data("titles.csv", "") + data("more.csv", "one,,three,four")
        + asked("/a/${first name}/${one}${three}?${näme}${x}${b}")
        + loop(2, data("turns.csv", "") + data("few.csv", "f", recycle=False) + asked("/b/${t}?${f}"))
        + asked("/c/${t}?${f}")
    )  # fmt: skip


ROWS_SENT = [
    "/a/ada/ab?v=Gr%C3%B6%C3%9Fe1%221", "/b/1?v=a", "/b/2?v=b", "/c/2?v=b",
    "/a/bob/de?v=%C3%8522%22", "/b/3?v=%3CEOF%3E", "/b/4?v=%3CEOF%3E", "/c/4?v=%3CEOF%3E",
]  # fmt: skip


def test_data_sets_in_controllers_and_of_other_files(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    (tmp_path / "p.jmx").write_bytes(document(port_of(server) + data_sets(tmp_path), group=threads(1, 2)))
    jmeter.run(["-n", "-t", str(tmp_path / "p.jmx")], quick_desk()[0])
    assert targets(server) == ROWS_SENT


@needs_jmeter
def test_jmeter_itself_reads_them_so(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    (tmp_path / "p.jmx").write_bytes(document(port_of(server) + data_sets(tmp_path), group=threads(1, 2)))
    run_jmeter(["-n", "-t", str(tmp_path / "p.jmx")], tmp_path)
    assert targets(server) == ROWS_SENT


def test_a_first_line_is_skipped_where_variables_are_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,x y\n1,2\n")
    given = data(f"{tmp_path}/t.csv", "a,b").replace(
        '<boolProp name="ignoreFirstLine">false', '<boolProp name="ignoreFirstLine">true'
    )
    (feeder,) = load_of(given + sampler("/${a}${b}")).workload.feeders.values()
    assert (feeder.file, feeder.rows, feeder.columns) == (None, (("1", "2"),), ("a", "b"))
    (tmp_path / "t.csv").write_text("id,xy\n1,2\n")
    (feeder,) = load_of(given + sampler("/${a}${b}")).workload.feeders.values()
    assert feeder.file == f"{tmp_path}/t.csv"  # its names are good enough for the engine


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1\n2,3\n", "1 to 2 values for 2 variables"),
        ("a,b\n", "at least one row"),
        ("", "at least one row"),
    ],
)
def test_rows_of_other_lengths(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(Exception, match=words):
        load_of(data(f"{tmp_path}/t.csv", "") + sampler())


def test_what_a_data_set_in_a_controller_cannot_do(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1\n")
    ends = data(f"{tmp_path}/t.csv", "a", recycle=False).replace(
        '<boolProp name="stopThread">false', '<boolProp name="stopThread">true'
    )
    with refuses("unsupported", "CSVDataSet"):
        load_of(loop(2, ends + sampler()))
    with refuses("shared", "CSVDataSet"):
        load_of(loop(2, data(f"{tmp_path}/t.csv", "a", "thread") + sampler()), group=threads(2))
