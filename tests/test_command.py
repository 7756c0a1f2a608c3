"""tests/command.py: a command that does not end says where its threads are; one that could not be forked is
as short as one that was; and a test run that has drawn charts can be forked.
"""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from prony.load import reference
from prony.store import Store
from tests import command, drawing
from tests.load.test_load_models import server


@pytest.fixture(params=["forked", "anew"])
def start(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands begin this way."""
    monkeypatch.setattr(command, "_holds_a_database", lambda: request.param == "anew")


@pytest.mark.usefixtures("start")
def test_a_command_that_hangs_is_ended_and_prints_its_stacks(tmp_path: Path) -> None:
    with server("--delay", "fixed:5ms") as url:
        words = ["load", url, "-c", "1", "-d", "500s", "--warmup", "0s", "--db", str(tmp_path / "results.db")]
        with command.start(words) as process:
            assert process.stderr is not None
            assert process.stderr.readline()  # it runs
            stacks = r"[\s\S]*prony/cli/main\.py"
            with pytest.raises(AssertionError, match=r"still running after 0\.2 s" + stacks):
                command.ended(process, 0.2)
        assert process.returncode == -signal.SIGKILL


@pytest.mark.usefixtures("start")
def test_what_surrounds_a_measurement_is_short_however_a_command_begins(tmp_path: Path) -> None:
    file = tmp_path / "results.db"
    with server("--delay", "fixed:5ms") as url:
        words = ["load", url, "-c", "1", "-d", "1s", "--warmup", "0s"]
        done = command.run(words, env=os.environ | {"PRONY_DB": str(file)})
    assert done.returncode in (0, 3), done.stderr
    with closing(Store.open(str(file))) as store:
        (trial,) = store.trials(store.experiment("latest").id)
    calibration = trial.record.evidence.calibration
    assert calibration is not None
    assert calibration.duration_s < reference.MEASURED_S


@pytest.mark.usefixtures("start")
def test_words_and_exit_codes_are_those_of_the_command(tmp_path: Path) -> None:
    done = command.run(["load", "ftp://no", "--db", tmp_path / "results.db"], cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("prony: ")
    assert "ftp://no" in done.stderr
    assert list(tmp_path.iterdir()) == []


CHART = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "data": {"values": [{"x": 1, "y": 2}]},
    "mark": "point",
    "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
}


def test_charts_are_drawn_in_another_process() -> None:
    import vl_convert

    assert isinstance(vl_convert, drawing.Elsewhere)
    assert vl_convert.vegalite_to_svg(CHART, allowed_base_urls=[]).startswith("<svg")
    with pytest.raises(ValueError, match="conversion failed"):
        vl_convert.vegalite_to_svg({**CHART, "mark": 7}, allowed_base_urls=[])
    threads = [task.read_text() for task in Path("/proc/self/task").glob("*/comm")]
    assert not [name for name in threads if "tokio" in name], "this process could not be forked any more"


def test_a_fork_draws_its_charts_itself() -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        drawn = b""
        try:
            drawn = drawing_of_this_process().vegalite_to_svg(CHART, allowed_base_urls=[])[:4].encode()
        finally:
            os.write(write, drawn or b"none")
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as said:
        assert said.read() == b"<svg"
    assert os.waitpid(child, 0)[1] == 0


def drawing_of_this_process() -> drawing.Elsewhere:
    import vl_convert

    assert isinstance(vl_convert, drawing.Elsewhere)
    return vl_convert
