"""prony jmeter: elements of plug-ins that become what JMeter has of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.plan.blocks import Condition, Parallel
from prony.plan.step import Block
from prony_frontends.base import Translated
from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.plugin_controllers import order
from prony_frontends.jmeter.translate import of_tree
from tests.frontends.codes import noted, refuses
from tests.frontends.jmx_text import document, element, flag, found, prop, sampler

RANDOM_ROWS = "com.blazemeter.jmeter.RandomCSVDataSetConfig"


def data(
    names: str, *, shuffled: bool = True, again: bool = True, own: bool = False, skips: bool = False
) -> str:
    return element(
        RANDOM_ROWS, prop("filename", "r.csv"), prop("fileEncoding", "UTF-8"), prop("delimiter", ","),
        prop("variableNames", names), flag("randomOrder", shuffled), flag("ignoreFirstLine", skips),
        flag("rewindOnTheEndOfList", again), flag("independentListPerThread", own),
    )  # fmt: skip


def load(folder: Path, inside: str, lines: str = "n,w\n1,a\n2,b\n3,c\n4,d\n") -> Translated:
    (folder / "r.csv").write_text(lines, encoding="utf-8")
    return of_tree(jmx.parse(document(inside), str(folder / "p.jmx")), folder / "p.jmx", {}).translated


@pytest.mark.parametrize(("names", "skips"), [("", False), ("n,w", True)])
def test_rows_in_random_order_are_all_rows_of_the_file(names: str, skips: bool, tmp_path: Path) -> None:
    made = load(tmp_path, data(names, skips=skips) + sampler("/${n}"))
    (feeder,) = made.trial.workload.feeders.values()
    assert (feeder.order, feeder.at_end, feeder.file) == ("sequence", "recycle", None)
    assert sorted(feeder.rows) == [("1", "a"), ("2", "b"), ("3", "c"), ("4", "d")]
    assert noted(made.notes, "one_order")


def test_the_list_may_end(tmp_path: Path) -> None:
    made = load(tmp_path, data("n,w", again=False) + sampler("/${n}"), "1,a\n2,b\n")
    (feeder,) = made.trial.workload.feeders.values()
    assert (sorted(feeder.rows), feeder.at_end) == ([("1", "a"), ("2", "b")], "stop")
    assert not noted(made.notes, "one_order")


def test_in_order_it_is_a_data_set(tmp_path: Path) -> None:
    made = load(tmp_path, data("n,w", shuffled=False, own=True) + sampler("/${n}"), "1,a\n2,b\n")
    (feeder,) = made.trial.workload.feeders.values()
    assert (feeder.rows, feeder.file) == ((), str(tmp_path / "r.csv"))


def test_a_random_order_for_each_thread_is_refused(tmp_path: Path) -> None:
    with refuses("shared", "RandomCSVDataSet"):
        load(tmp_path, data("n", own=True) + sampler("/${n}"))


def weights(*rows: tuple[str, int], random: bool = False) -> str:
    cells = {name: prop("0", name) + prop("1", weight) + prop("2", "true") for name, weight in rows}
    table = "".join(f'<collectionProp name="{name}">{row}</collectionProp>' for name, row in cells.items())
    return element(
        "com.blazemeter.jmeter.control.WeightedSwitchController",
        f'<collectionProp name="Weights">{table}</collectionProp>', flag("IsRandomChoice", random),
        below="".join(sampler(f"/{name}", name=name) for name, _ in rows),
    )  # fmt: skip


def test_a_weighted_switch_takes_the_branch_that_is_furthest_behind(tmp_path: Path) -> None:
    assert order([30, 50, 20]) == [1, 0, 2, 1, 0, 1, 2, 1, 0, 1]
    assert order([1]) == [0]
    assert order([0, 2, 2]) == [1, 2]
    count, *branches = load(tmp_path, weights(("a", 1), ("b", 3))).trial.workload.steps
    assert isinstance(count, Block)
    assert list((count.set or {}).values()) == ["${sequence name=visit1 start=0 end=3 per=user}"]
    conditions = [entry.condition for entry in branches if isinstance(entry, Block)]
    assert [one.right for one in conditions if isinstance(one, Condition)] == ["^(?:1)$", "^(?:0|2|3)$"]
    (drawn,) = load(tmp_path, weights(("a", 1), ("b", 3), random=True)).trial.workload.steps
    assert isinstance(drawn, Block)
    assert (drawn.choice, drawn.weights) == ("random", (1.0, 3.0))


def parallel(below: str, *more: str) -> str:
    return element("com.blazemeter.jmeter.controller.ParallelSampler", *more, below=below)


def test_a_parallel_controller_has_a_branch_for_each_child(tmp_path: Path) -> None:
    (made,) = load(tmp_path, parallel(sampler("/a") + sampler("/b") + sampler("/c"))).trial.workload.steps
    assert isinstance(made, Block)
    assert made.parallel == Parallel(at_once=3)
    assert len(made.steps) == 3
    for below, more, element_name in (
        (sampler("/a"), flag("PARENT_SAMPLE", True), "ParallelSampler"),
        (sampler("/a", below=found("v", "(.)")), "", "RegexExtractor"),
    ):
        with refuses("unsupported", element_name):
            load(tmp_path, parallel(below, more))
