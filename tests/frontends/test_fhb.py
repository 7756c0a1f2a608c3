"""`prony fhb`: Faban's command line, its lines, Little's law and think times. Faban itself is in no package
registry, so its output is compared with its documentation alone.
"""

from __future__ import annotations

import shlex
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.errors import UsageError
from prony.plan.load import ClosedLoad, SteadyWindow
from prony_frontends.fhb import FRONT_END, run, translate
from prony_frontends.fhb.arguments import parse
from prony_frontends.fhb.figures import FhbFigures, figures, report
from tests.entries import requests
from tests.exit_codes import demanded_code
from tests.frontends.conftest import Front, Served

FINE = FhbFigures(
    per_s=7169.3,
    successes=14000,
    failures=0,
    mean_s=0.219,
    max_s=2.861,
    percentiles_s={90: 0.32, 95: 0.4, 99: 0.5},
    simulated=500.0,
    drawn_s=0.5,
    thought_s=0.504,
)


def test_the_lines_of_a_good_run() -> None:
    assert list(report(parse(["-c", "500", "-W", "500", "http://h/"]), FINE)) == [
        "ops/sec: 7169.300",
        "% errors: 0.0",
        "avg. time: 0.219",
        "max time: 2.861",
        "90th %: 0.320",
        "95th %: 0.400",
        "99th %: 0.500",
    ]


def test_the_lines_of_a_bad_one() -> None:
    bad = FhbFigures(
        per_s=10.0,
        successes=75,
        failures=25,
        mean_s=1.0,
        max_s=3.0,
        percentiles_s={90: 2.0, 95: 2.5, 99: 3.0},
        simulated=13092.0,
        drawn_s=2.0,
        thought_s=2.5,
    )
    assert list(report(parse(shlex.split("-c 16000 -W 2000 -t 1.5 http://h/")), bad)) == [
        "ops/sec: 10.000",
        "% errors: 25.0",
        "avg. time: 1.000",
        "max time: 3.000",
        "90th %: 2.000",
        "ERROR: Missed target 90% of 1.5",
        "95th %: 2.500",
        "99th %: 3.000",
        "WARNING: Little's law verification results low: 16000 users requested; 13092.000 users simulated",
        "ERROR: Think time deviation is too high; requested 2000; actual is 2500.000",
    ]


def test_the_load_is_the_one_asked_for(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("a=1")
    load = translate(
        ["-c", "30", "-r", "10/20/5", "-W500", "-p", str(data), "-b", "http://h:81/x?y=${z}"]
    ).trial
    assert isinstance(load.load, ClosedLoad)
    assert (load.load.users, load.load.think.ms, load.load.ramp_up_s) == pytest.approx((30, 500.0, 0.6))
    assert isinstance(load.measured, SteadyWindow)
    assert (load.measured.window_s, load.warm_up.cap_s) == (20.0, 10.0)
    step = requests(load.workload.steps)[0]
    assert (step.method, step.path) == ("POST", "/x?y=$${z}")
    assert step.headers["Content-Type"] == "application/octet-stream"


def test_experiment_e_in_small(serve: Callable[..., Served], front: Front, tmp_path: Path) -> None:
    """Users who think, the way experiment E was published."""
    server = serve("--delay", "fixed:10ms")
    out = tmp_path / "out"
    words = [
        "-c",
        "4",
        "-r",
        "1/2/0",
        "-W",
        "40",
        "-s",
        "-D",
        str(out),
        "-J",
        "-server",
        f"{server.url}/Ping",
    ]
    assert run(words, front.context()) == demanded_code(front.store)
    said = front.out.getvalue()
    (ran,) = front.store.trials(front.store.experiments()[0].id)
    assert ran.record.evidence.engine is not None
    assert ran.record.evidence.engine.window is not None
    found = figures(ran.record.evidence.engine.window)
    assert f"ops/sec: {found.per_s:.3f}\n" in said
    assert found.mean_s >= 0.01
    assert found.drawn_s == pytest.approx(0.04)
    assert found.thought_s >= 0.04
    assert 0 < found.simulated <= 4.5
    assert f"Saving output from run in {out}" in said
    root = ElementTree.parse(out / "1" / "summary.xml").getroot()
    assert root.findtext(".//driverSummary/metric") == f"{found.per_s:.3f}"
    assert root.findtext(".//users") == "4"
    assert (out / "fhb.seq").read_text() == "2\n"
    assert front.err.getvalue().startswith("prony: note: -J: ")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("-n 10 http://h/", "use prony ab -n"),
        ("-K 10 http://h/", "-K is not supported"),
        ("-S http://h/", "Faban's substitutions"),
        ("-f run.xml", "run.xml: -f is not supported"),
        ("-r 10/20 http://h/", "expected three numbers"),
        ("-r a/20/1 http://h/", "expected a number"),
        ("-c 0 http://h/", "-c is '0'"),
        ("-i http://h/", "unknown option -i"),
        ("-c", "-c needs a value"),
        ("http://a/ http://b/", "expected one URL"),
        ("h/", "expected http://"),
        ("-b http://h/", "needs -p FILE"),
        ("-p none http://h/", "not a readable file"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(argv: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        translate(shlex.split(argv))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                ["-c", "-r", "-W", "-t", "-p", "-z", "-D", "-J", "-s", "-k", "5", "1/2/3", "nan"]
            ),
            st.text(max_size=6),
        ),
        max_size=6,
    ),
    st.sampled_from(["http://h/", "https://h:1/x", "http://[", "ftp://h/", ""]),
)
def test_any_words_translate_or_are_refused(words: list[str], url: str) -> None:
    try:
        made = translate([*words, url])
    except UsageError:
        return
    assert made.trial.measured.kind == "steady"


def test_version_and_help_run_nothing(front: Front) -> None:
    assert run(["-V"], front.context()) == 0
    assert run(["-h"], front.context()) == 0
    assert "usage: prony fhb" in front.out.getvalue()
    assert FRONT_END.name == "fhb"
