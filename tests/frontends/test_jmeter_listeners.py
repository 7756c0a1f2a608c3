"""prony jmeter: files of listeners, held against those that JMeter itself writes."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prony.experiment.testbed import Progress
from prony_frontends import jmeter
from prony_frontends.base import FrontEndOptions, Translated
from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.listeners import COLUMNS, RowFilter, RowsFile
from prony_frontends.jmeter.translate import JMeterPlan, of_tree
from tests.frontends.codes import noted
from tests.frontends.conftest import QuickDesk, Served, quick_desk
from tests.frontends.jmx_text import PLANS, document, element, flag, prop, repeated, sampler, variables
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter
from tests.frontends.site import Response, site
from tests.frontends.test_jmeter_on_error import FAILS
from tests.frontends.test_jmeter_samples import transaction

FEW = ("timestamp", "label", "code", "success", "fieldNames", "threadCounts", "url", "sampleCount")
XML = ("xml", "time", "label", "code", "message", "threadName", "success", "dataType", "bytes", "sentBytes",
       "url", "subresults", "threadCounts", "idleTime", "latency", "connectTime", "timestamp")  # fmt: skip


def listener(file: object, *asked: str, more: str = "", gui: str = "SimpleDataWriter") -> str:
    fields = "".join(f"<{name}>true</{name}>" for name in asked) + "<responseData>false</responseData>"
    config = (
        f'<objProp><name>saveConfig</name><value class="SampleSaveConfiguration">{fields}</value></objProp>'
    )
    return element(
        "ResultCollector", more, config if asked else "", prop("filename", file), name="writer", gui=gui
    )


def plan(port: int, folder: Path) -> bytes:
    """Listeners of each place of a plan."""

    def one(name: str, below: str = "") -> str:
        return sampler(f"/{name}", prop("HTTPSampler.port", port), below, name=name)

    errors = flag("ResultCollector.error_logging", True)
    successes = flag("ResultCollector.success_only_logging", True)
    inside = (
        one("a", listener(folder / "sampler.csv", *FEW))
        + transaction("t", one("b") + one("c", FAILS) + listener(folder / "below.csv", *FEW))
        + listener(folder / "errors.csv", *FEW, more=errors)
        + listener(folder / "new" / "right.csv", "label", "success", more=successes)
        + listener(folder / "samples.xml", *XML)
    )
    beside = variables(folder=str(folder)) + listener("${folder}/all.csv", *FEW)
    return document(inside, beside, prop("ThreadGroup.num_threads", 1) + repeated(2))


FILES = ("all.csv", "sampler.csv", "below.csv", "errors.csv", "new/right.csv")


def seen(folder: Path) -> dict[str, list[list[str]]]:
    """What each file holds, without what is another time."""
    found: dict[str, list[list[str]]] = {}
    for name in FILES:
        with (folder / name).open(newline="") as file:
            lines = list(csv.reader(file))
        if lines[0][0] == "timeStamp":
            lines = [line[1:] for line in lines]
        found[name] = lines
    return found


def samples(file: Path) -> str:
    """Its text without times; -Latency-, -Connect- and their like are numbers of another run."""
    return re.sub(r' (t|it|lt|ct|ts)="\d+"', r' \1=""', file.read_text())


@needs_jmeter
@pytest.mark.usefixtures("same_java")
def test_files_are_those_of_jmeter(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    real, ours = tmp_path / "real", tmp_path / "ours"
    for folder in (real, ours):
        folder.mkdir()
        (folder / "p.jmx").write_bytes(plan(server.port, folder))
    for _ in range(2):  # rows are added to those of the first run
        run_jmeter(["-n", "-t", str(real / "p.jmx")], tmp_path)
        desk, _, err = quick_desk()
        jmeter.run(["-n", "-t", str(ours / "p.jmx")], desk)
    assert seen(ours) == seen(real)
    assert samples(ours / "samples.xml") == samples(real / "samples.xml")
    assert "all.csv" in err.getvalue()


def test_each_file_has_the_rows_of_its_place(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    (tmp_path / "p.jmx").write_bytes(plan(server.port, tmp_path))
    jmeter.run(["-n", "-t", str(tmp_path / "p.jmx")], quick_desk()[0])
    found = {name: [line[0] for line in lines] for name, lines in seen(tmp_path).items()}
    assert found == {
        "all.csv": ["label", *["a", "b", "c", "t"] * 2],
        "sampler.csv": ["label", "a", "a"],
        "below.csv": ["label", *["b", "c", "t"] * 2],
        "errors.csv": ["label", *["c", "t"] * 2],
        "new/right.csv": ["a", "b"] * 2,
    }
    text = samples(tmp_path / "samples.xml")
    assert text.startswith(
        '<?xml version="1.0" encoding="UTF-8"?>\n<testResults version="1.2">\n<httpSample '
    )
    assert text.count("<httpSample ") == 6
    assert text.endswith("</testResults>\n")


@needs_jmeter
def test_samples_of_a_page_are_within_its_own(tmp_path: Path) -> None:
    responses = {"/p": Response("<img src=a.png>"), "/a.png": Response("x", "image/png")}
    texts = []
    with site(responses) as served:
        for name, run in (("real", None), ("ours", quick_desk()[0])):
            page = sampler(
                "/p", prop("HTTPSampler.port", served.port) + flag("HTTPSampler.image_parser", True), name="p"
            )
            kept = ("xml", "label", "code", "success", "subresults", "url")
            inside = page + listener(tmp_path / f"{name}.xml", *kept)
            content = document(inside, group=prop("ThreadGroup.num_threads", 1) + repeated(1))
            (tmp_path / f"{name}.jmx").write_bytes(content)
            argv = ["-n", "-t", str(tmp_path / f"{name}.jmx")]
            if run is None:
                run_jmeter(argv, tmp_path)
            else:
                jmeter.run(argv, run)
            texts.append((tmp_path / f"{name}.xml").read_text())
    assert texts[0] == texts[1]


def made(inside: str, beside: str = "") -> JMeterPlan:
    return of_tree(jmx.parse(document(inside, beside), "p.jmx"), PLANS / "p.jmx", {})


def test_what_a_listener_is_told() -> None:
    assert made(sampler() + listener("")).files == ()
    assert made(sampler() + listener("x.jtl")).files == (
        RowsFile(Path("x.jtl"), wanted=(RowFilter(None, 2),)),
    )
    (home,) = made(sampler(), listener("~/x.jtl", "xml", "label", "responseData")).files
    assert (home.path, home.xml, home.titles, home.columns) == (PLANS / "x.jtl", True, False, ("label",))
    assert COLUMNS[0] == "timeStamp"


def test_two_listeners_of_one_file_write_a_row_once(serve: Callable[..., Served], tmp_path: Path) -> None:
    server, log = serve(), tmp_path / "x.jtl"
    page = sampler("/", prop("HTTPSampler.port", server.port), listener(log), name="page")
    (tmp_path / "p.jmx").write_bytes(document(page + listener(log), listener(log)))
    jmeter.run(["-n", "-t", str(tmp_path / "p.jmx"), "-l", str(log)], quick_desk()[0])
    assert len(log.read_text().splitlines()) == 2


def test_names_that_are_not_known_are_noted_and_not_written() -> None:
    plan = made(sampler(), listener("${nowhere}.csv"))
    assert plan.files == ()
    notes = plan.translated.notes
    assert noted(notes, "rows_not_written", "ResultCollector")
    assert not noted(notes, "undefined")
    unknown = made(sampler(), listener("x.xml", "xml", "responseHeaders")).translated.notes
    assert noted(unknown, "rows_lack", "response headers")


def test_a_file_that_cannot_be_written_does_not_stop_the_run(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    server = serve()
    (tmp_path / "taken").write_text("a file, and no folder")
    page = sampler("/", prop("HTTPSampler.port", server.port))
    (tmp_path / "p.jmx").write_bytes(document(page + listener(tmp_path / "taken" / "x.csv")))
    desk, _, err = quick_desk()
    assert jmeter.run(["-n", "-t", str(tmp_path / "p.jmx")], desk) == 0
    assert "a listener's file is not written" in err.getvalue()
    assert server.ended()["requests"] == 1


def test_the_log_of_requests_is_kept_where_temporary_files_are(
    serve: Callable[..., Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the file of -l there may be no room for another, as beside /dev/null."""
    places: list[Path] = []

    class Desk(QuickDesk):
        __slots__ = ()

        def measure(self, translated: Translated, progress: Progress) -> Any:
            places.append(Path(translated.trial.log or "").parent.parent)
            return super().measure(translated, progress)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    page = sampler("/", prop("HTTPSampler.port", serve().port))
    (tmp_path / "p.jmx").write_bytes(document(page))
    desk = Desk(FrontEndOptions(), quick_desk()[0].offer, io.StringIO(), io.StringIO())
    assert jmeter.run(["-n", "-t", str(tmp_path / "p.jmx"), "-l", "/dev/null"], desk) == 0
    assert places == [tmp_path]
