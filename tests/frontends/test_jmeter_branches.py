"""prony jmeter: Switch, ForEach, Module and Include controllers send what they send in JMeter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from tests.frontends.conftest import Served
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
    variables,
)
from tests.frontends.real_jmeter import BOTH, offered_by
from tests.frontends.test_jmeter_blocks import targets

ROUNDS = 5
WORDS = ("0", "1", "other", "9", "two")
"""What the switch is given in the rounds."""
FRAGMENT = "TestFragmentController"


def switch(value: str, *children: str) -> str:
    return element("SwitchController", prop("SwitchController.value", value), below="".join(children))


def for_each(base: str, element_name: str, below: str, start: str = "", end: str = "-") -> str:
    return element(
        "ForeachController", prop("ForeachController.inputVal", base),
        prop("ForeachController.returnVal", element_name), flag("ForeachController.useSeparator", True),
        prop("ForeachController.startIndex", start),
        "" if end == "-" else prop("ForeachController.endIndex", end),
        below=below, name=f"each {base}",
    )  # fmt: skip


def module(*names: str) -> str:
    held = "".join(prop(str(place), name) for place, name in enumerate(names))
    return element(
        "ModuleController", f'<collectionProp name="ModuleController.node_path">{held}</collectionProp>'
    )


def include(name: str) -> str:
    return element("IncludeController", prop("IncludeController.includepath", name))


def fragment(below: str) -> str:
    return element(FRAGMENT, below=below, name="fragment")


def plan(port: int, folder: Path) -> bytes:
    """One user, ROUNDS times."""
    (folder / "words.csv").write_text("\n".join(WORDS) + "\n")
    part = '<jmeterTestPlan version="1.2" properties="5.0"><hashTree>{}</hashTree></jmeterTestPlan>'
    inside = fragment(sampler("/included/${word}") + element("GenericController", below=sampler("/deeper")))
    (folder / "part.jmx").write_text(part.format(element("TestPlan", below=inside, name="part")))
    data = element(
        "CSVDataSet", prop("filename", "words.csv"), prop("variableNames", "word"),
                   prop("delimiter", ","), flag("recycle", True), prop("shareMode", "shareMode.all"),
    )  # fmt: skip
    two = element("GenericController", below=sampler("/two/a") + sampler("/two/b"), name="two")
    numbers = posted("/echo", "n1 n2 n3", found("n", r"n(\d)").replace(">1<", ">-1<"))
    steps = (
        element("ConfigTestElement", prop("HTTPSampler.port", port))
        + data
        + switch("${word}", sampler("/zero"), sampler("/one"), two, sampler("/else", name="Default"))
        + switch("two", sampler("/no"), two.replace("/two/", "/sure/"))
        + numbers
        + for_each("n", "one", sampler("/n/${one}/${__jm__each n__idx}"))
        + for_each("x", "x", sampler("/x/${x}"), "1", "3")
        + for_each("x", "none", sampler("/never"), "", "")
        + module("Test Plan", "T", "fragment", "shared")
        + include("part.jmx")
    )
    shared = element("GenericController", below=sampler("/shared/${word}"), name="shared")
    beside = variables(x_1="p", x_2="q", x_3="r", x_4="s") + fragment(shared)
    return document(steps, beside, repeated(ROUNDS) + prop("ThreadGroup.num_threads", 1))


def expected() -> list[str]:
    """What JMeter sends for it."""
    branch = {"0": ["/zero"], "1": ["/one"], "other": ["/else"], "9": ["/zero"], "two": ["/two/a", "/two/b"]}
    sent: list[str] = []
    for word in WORDS:
        sent += [*branch[word], "/sure/a", "/sure/b", "/echo", "/n/1/0", "/n/2/1", "/n/3/2", "/x/q", "/x/r"]
        sent += [f"/shared/{word}", f"/included/{word}", "/deeper"]
    return sent


@BOTH
def test_branches_send_what_jmeter_sends(who: str, serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    (tmp_path / "plan.jmx").write_bytes(plan(server.port, tmp_path))
    offered_by(who, tmp_path / "plan.jmx")
    assert targets(server) == expected()


def test_what_a_switch_draws_it_draws_once() -> None:
    """Its branches would not be as likely as they are in JMeter if each drew for itself."""
    children = sampler("/a") + sampler("/b") + sampler("/c")
    steps = load_of(switch("${__Random(0,2)}", children)).workload.steps
    assert sum(step.model_dump_json().count("random int 0 2") for step in steps) == 1


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        (module("Test Plan", "T", "nowhere"), "a path to a controller of this plan"),
        (module("Test Plan", "T", "G"), "a module that contains itself"),
        (include("nowhere.jmx"), "cannot be read"),
        (include("sessions.jmx"), "a Test Fragment directly below"),
        (include("${__P(file)}"), "without variables"),
        (for_each("n", "one", sampler("/${one}")) + sampler("/${__Random(1,2,n_1)}"), ""),
        (posted("/", "x", found("n_1", "(.)")) + for_each("n", "one", sampler()), "changes during the run"),
    ],
)
def test_what_cannot_be_put_in_is_refused(inside: str, says: str) -> None:
    if not says:  # a variable that is not there when the plan is read: no round
        assert len(load_of(inside).workload.all_steps) == 1
        return
    with pytest.raises(UsageError, match=says):
        load_of(inside + sampler())
