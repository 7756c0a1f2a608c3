"""prony jmeter beside JMeter 5.6.3: the same plan by both, and what the server and the log then have."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony_frontends import jmeter
from tests.frontends.conftest import quick_desk
from tests.frontends.jmx_text import document, element, flag, found, prop, repeated, sampler, variables
from tests.frontends.real_jmeter import BOTH, exits, needs_jmeter
from tests.frontends.site import Response, site
from tests.frontends.test_jmeter_actions import action, hosts
from tests.frontends.test_jmeter_groups import document as groups_of
from tests.frontends.test_jmeter_inert import HARMLESS
from tests.frontends.test_jmeter_listeners import FEW, listener
from tests.frontends.test_jmeter_meeting import threads, timer
from tests.frontends.test_jmeter_on_error import FAILS
from tests.frontends.test_jmeter_samples import transaction

ONE = prop("ThreadGroup.num_threads", 1) + repeated(1)
COMPARED = ("label", "responseCode", "responseMessage", "success", "threadName", "URL")
PlanOf = Callable[[int, Path], bytes]
"""The plan for the port of a server, and the folder that it is run in."""


@dataclass(frozen=True)
class Ran:
    """What came of a plan."""

    heads: list[tuple[str, ...]]
    """Line and headers of each request."""
    rows: list[dict[str, str]]
    code: int
    folder: Path

    @property
    def paths(self) -> list[str]:
        return [head[0].split()[1] for head in self.heads]

    @property
    def labels(self) -> str:
        """Each with its success."""
        signs = {"true": "+", "false": "-"}
        return " ".join(row["label"] + signs[row["success"]] for row in self.rows)


def ran(
    who: str,
    plan_of: PlanOf,
    folder: Path,
    responses: Mapping[str, Response] | None = None,
    options: Sequence[str] = (),
    own: Sequence[str] = (),
) -> Ran:
    """The plan by JMeter ("theirs") or Prony. Ports, and what a Java says of itself, are left out. `own`:
    options that JMeter does not have.
    """
    folder = folder / who
    folder.mkdir()
    log = folder / "out.jtl"
    with site(responses or {"/": Response()}) as served:
        (folder / "p.jmx").write_bytes(plan_of(served.port, folder))
        argv = ["-n", "-t", str(folder / "p.jmx"), "-l", str(log), *options]
        if who == "theirs":
            code = exits(argv, folder, cwd=folder)
        else:
            code = jmeter.run([*argv, *own], quick_desk()[0])
        heads = [
            tuple(
                re.sub(r"\(Java/[^)]*\)", "(Java)", line).replace(str(served.port), "PORT") for line in head
            )
            for head in served.heads
        ]
        with log.open(newline="") as file:
            rows = [
                {name: row[name].replace(str(served.port), "PORT") for name in COMPARED}
                for row in csv.DictReader(file)
            ]
    return Ran([head for head in heads if head[0] != "HEAD / HTTP/1.1"], rows, code, folder)


def both(plan_of: PlanOf, folder: Path, responses: Mapping[str, Response] | None = None) -> tuple[Ran, Ran]:
    """Theirs and ours."""
    theirs, ours = (ran(who, plan_of, folder, responses) for who in ("theirs", "ours"))
    assert theirs.heads == ours.heads
    assert theirs.code == ours.code
    return theirs, ours


def of(inside: Callable[[str], str], beside: str = "", group: str = ONE) -> PlanOf:
    """A plan of these elements; they are told the property that names the port."""
    return lambda port, _: document(inside(prop("HTTPSampler.port", port)), beside, group)


OF_JMETER = {
    name: text
    for name, text in HARMLESS.items()
    if name not in ("backend",) and not re.match(r"<\w+\.", text)
}
"""Those that JMeter has without plug-ins; a backend listener would open a connection of its own."""


@needs_jmeter
def test_elements_that_change_nothing_change_nothing_there_either(tmp_path: Path) -> None:
    # JMeter's window lets a recorder stand below the plan alone; in a group it would send what it holds.
    everywhere = "".join(text for name, text in OF_JMETER.items() if name != "recorder")

    def inside(port: str) -> str:
        return everywhere + sampler("/a", port, below=everywhere, name="a") + sampler("/b", port, name="b")

    responses = {"/a": Response(), "/b": Response(status=500)}
    theirs, ours = both(of(inside, beside="".join(OF_JMETER.values())), tmp_path, responses)
    assert theirs.paths == ["/a", "/b"]
    # JMeter has a sub-sample for each Debug PostProcessor.
    assert [row for row in theirs.rows if not re.search(r"-\d$", row["label"])] == ours.rows
    assert theirs.code == 0  # also where a request has failed


def test_a_plan_that_is_not_there_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as fault:
        jmeter.run(["-n", "-t", str(tmp_path / "none.jmx")], quick_desk()[0])
    assert fault.value.exit_code != 0


@needs_jmeter
def test_nor_is_it_there(tmp_path: Path) -> None:
    assert exits(["-n", "-t", str(tmp_path / "none.jmx")], tmp_path, tmp_path) != 0


@needs_jmeter
def test_hosts_of_a_dns_cache_manager(tmp_path: Path) -> None:
    def inside(port: str) -> str:
        return hosts(**{"shop.invalid": "127.0.0.1"}) + sampler("/x", port, domain="shop.invalid")

    theirs, ours = both(of(inside), tmp_path, {"/x": Response()})
    assert "Host: shop.invalid:PORT" in theirs.heads[0]
    assert theirs.rows == ours.rows


@needs_jmeter
def test_a_pause_is_no_sample(tmp_path: Path) -> None:
    def inside(port: str) -> str:
        return sampler("/a", port, name="a") + action(1, 50) + sampler("/b", port, name="b")

    theirs, ours = both(of(inside, group=prop("ThreadGroup.num_threads", 1) + repeated(2)), tmp_path)
    assert theirs.paths == ["/a", "/b"] * 2
    assert theirs.rows == ours.rows


def endless(who: str) -> str:
    """Two threads that walk until the clock ends them: in JMeter by the plan, in Prony by its option."""
    ends = flag("ThreadGroup.scheduler", True) + prop("ThreadGroup.duration", "${__P(duration,2)}")
    threads = prop("ThreadGroup.num_threads", 2) + repeated(-1, forever=True)
    return threads + ends * (who == "theirs")


@needs_jmeter
@pytest.mark.parametrize(
    ("options", "own"), [((), ("--duration", "2")), (("-Jduration=2",), ())], ids=["--duration", "-Jduration"]
)
def test_a_group_without_an_end_ends_when_it_is_told_to(
    options: Sequence[str], own: Sequence[str], tmp_path: Path
) -> None:
    def plan_of(port: int, folder: Path) -> bytes:
        pause = element("ConstantTimer", prop("ConstantTimer.delay", 100))
        walk = pause + sampler("/a", prop("HTTPSampler.port", port), name="a")
        return document(walk, group=endless(folder.name))

    theirs, ours = (
        ran(who, plan_of, tmp_path, {"/a": Response()}, options, own) for who in ("theirs", "ours")
    )
    assert theirs.code == ours.code == 0
    assert set(theirs.heads) == set(ours.heads)
    for one in (theirs, ours):
        assert len(one.paths) > 2
        assert {tuple(row.values()) for row in one.rows} == {
            ("a", "200", "OK", "true", f"G 1-{number}", "http://127.0.0.1:PORT/a") for number in (1, 2)
        }


def data_set(file: str, names: str = "") -> str:
    """With all that JMeter looks for."""
    flags = flag("ignoreFirstLine", False) + flag("quotedData", False) + flag("stopThread", False)
    return element(
        "CSVDataSet", prop("filename", file), prop("variableNames", names), prop("delimiter", ","),
        prop("fileEncoding", "UTF-8"), prop("shareMode", "shareMode.all"), flag("recycle", True), flags,
        gui="TestBeanGUI",
    )  # fmt: skip


@needs_jmeter
def test_data_files_elsewhere_are_those_beside_the_plan(tmp_path: Path) -> None:
    """Their plan names files that are there; ours one of a Windows machine and one that lies elsewhere."""

    def plan_of(port: int, folder: Path) -> bytes:
        where = folder if folder.name == "theirs" else folder / "kept"
        (where / "more").mkdir(parents=True)
        (where / "people.csv").write_text("name,town\nAda,London\nGrace,New York\n")
        (where / "more" / "items.csv").write_text("book\npen\nink\n")
        people = "people.csv" if folder.name == "theirs" else r"C:\load\people.csv"
        rows = data_set(people) + data_set("more/items.csv", "item")
        walk = sampler("/${name}?t=${item}", prop("HTTPSampler.port", port), name="${name}")
        return document(rows + walk, group=prop("ThreadGroup.num_threads", 1) + repeated(4))

    own = ("--csv-dir", str(tmp_path / "ours" / "kept"))
    responses = {"/Ada": Response(), "/Grace": Response()}
    theirs, ours = (ran(who, plan_of, tmp_path, responses, own=own) for who in ("theirs", "ours"))
    assert theirs.heads == ours.heads
    assert theirs.paths == ["/Ada?t=book", "/Grace?t=pen", "/Ada?t=ink", "/Grace?t=book"]


NAMES = ("http://127.0.0.1", "127.0.0.1/app", "127.0.0.1:PORT")


@needs_jmeter
@pytest.mark.parametrize("name", NAMES)
def test_a_server_name_that_is_more_than_a_name_is_an_error_in_jmeter_alone(
    name: str, tmp_path: Path
) -> None:
    def plan_of(port: int, _: Path) -> bytes:
        domain = name.replace("PORT", str(port))
        more = "" if "PORT" in name else prop("HTTPSampler.port", port)
        return document(sampler("/x", more, domain=domain, name="x"), group=ONE)

    theirs, ours = (ran(who, plan_of, tmp_path) for who in ("theirs", "ours"))
    assert theirs.paths == []
    (row,) = theirs.rows
    assert re.search("MalformedURLException|URISyntaxException", row["responseCode"])
    assert ours.paths == ["/app/x" if "/app" in name else "/x"]


@needs_jmeter
def test_variables_of_one_element_do_not_know_each_other(tmp_path: Path) -> None:
    def inside(port: str) -> str:
        header = (
            f'<elementProp name="" elementType="Header">{prop("Header.name", "X")}'
            f"{prop('Header.value', '${w}')}</elementProp>"
        )
        kept = f'<collectionProp name="HeaderManager.headers">{header}</collectionProp>'
        return variables(u="7", w="${u}", v="8") + element("HeaderManager", kept) + sampler("/${v}", port)

    theirs, _ = both(of(inside, beside=variables(t="1")), tmp_path)
    assert theirs.paths == ["/8"]
    assert "X: ${u}" in theirs.heads[0]


@needs_jmeter
@pytest.mark.parametrize("mode", ["continue", "startnextloop"])
@pytest.mark.parametrize("where", ["path", "query", "host"])
def test_a_variable_without_a_value_in_a_url_is_an_error_and_no_request(
    where: str, mode: str, tmp_path: Path
) -> None:
    def inside(port: str) -> str:
        broken = {
            "path": sampler("/x/${nobody}/y?a=1", port, name="broken"),
            "query": sampler("/x?a=${nobody}", port, name="broken"),
            "host": sampler("/x", port, name="broken", domain="${nobody}"),
        }[where]
        return sampler("/a", port, name="a") + broken + sampler("/b", port, name="b")

    group = prop("ThreadGroup.on_sample_error", mode) + prop("ThreadGroup.num_threads", 1) + repeated(2)
    responses = {"/a": Response(), "/b": Response()}
    theirs, ours = both(of(inside, group=group), tmp_path, responses)
    assert theirs.paths == (["/a", "/b"] if mode == "continue" else ["/a"]) * 2
    if mode == "continue":
        for row in (*theirs.rows, *ours.rows):
            row.pop("URL")  # of a sample that is no request Prony keeps none
        assert theirs.rows == ours.rows
        assert theirs.labels == "a+ broken- b+ a+ broken- b+"


@needs_jmeter
def test_patterns_may_hold_brackets_of_the_text(tmp_path: Path) -> None:
    texts = prop("1", "{&quot;status&quot;:&quot;UP&quot;") + prop("2", r"\d{2}")
    looks = element(
        "ResponseAssertion", f'<collectionProp name="Asserion.test_strings">{texts}</collectionProp>',
        prop("Assertion.test_field", "Assertion.response_data"), prop("Assertion.test_type", 2),
    )  # fmt: skip
    taken = found("id", r"{&quot;status&quot;.*&quot;id&quot;:(\d{1,3})}")

    def inside(port: str) -> str:
        return sampler("/up", port, looks + taken, name="up") + sampler("/${id}", port, name="item")

    responses = {"/up": Response('{"status":"UP","id":42}'), "/42": Response()}
    theirs, ours = both(of(inside), tmp_path, responses)
    assert theirs.paths == ["/up", "/42"]
    assert theirs.rows == ours.rows


def twins(port: int, folder: Path) -> bytes:
    """Groups, samplers and transactions of one name, each with a listener of its own."""
    one = prop("HTTPSampler.port", port)

    def group(number: int) -> str:
        def to(name: str) -> str:
            return listener(folder / f"{name}{number}.csv", *FEW, "subresults")

        inside = (
            sampler("/a", one, to("first"), name="page")
            + sampler("/b", one, FAILS, name="page")
            + transaction("both", sampler("/c", one, name="page") + to("parent"), parent=True)
            + transaction("both", sampler("/d", one, name="page") + to("plain"))
            + to("group")
        )
        return element("ThreadGroup", ONE, below=inside, name="Thread Group")

    return groups_of(group(1) + group(2))


def written(folder: Path) -> dict[str, list[list[str]]]:
    """Files of listeners: label, code, success, URL without its port."""
    found: dict[str, list[list[str]]] = {}
    for file in sorted(folder.glob("*.csv")):
        with file.open(newline="") as text:
            found[file.name] = [
                [row["label"], row["success"], re.sub(r":\d+/", "/", row["URL"])]
                for row in csv.DictReader(text)
            ]
    return found


TWINS = {
    "first": ["/a"], "group": ["/a", "/b", "null", "/c", "/d", "null"], "parent": ["null", "/c"],
    "plain": ["/d", "null"],
}  # fmt: skip


@BOTH
def test_a_listener_hears_its_own_element_and_no_other_of_that_name(who: str, tmp_path: Path) -> None:
    found = written(ran(who, twins, tmp_path).folder)
    shown = {name: [row[2].removeprefix("http://127.0.0.1") for row in rows] for name, rows in found.items()}
    assert shown == {f"{name}{number}.csv": TWINS[name] for name in TWINS for number in (1, 2)}


@needs_jmeter
def test_threads_that_meet_keep_their_numbers(tmp_path: Path) -> None:
    def inside(port: str) -> str:
        return timer(2) + sampler("/${__threadNum}", port, name="n")

    theirs, ours = (ran(who, of(inside, group=threads(4, 2)), tmp_path) for who in ("theirs", "ours"))
    assert sorted(theirs.paths) == sorted(ours.paths) == ["/1", "/2", "/3", "/4"]
    for one in (theirs, ours):
        assert sorted(row["threadName"] for row in one.rows) == [f"G 1-{n}" for n in (1, 2, 3, 4)]
        for row in one.rows:
            assert row["URL"].endswith("/" + row["threadName"].rpartition("-")[2])
