"""prony jmeter: whole runs, their log and their output."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony_frontends import jmeter
from prony_frontends.jmeter import summary
from prony_frontends.jmeter.listeners import COLUMNS
from tests.exit_codes import demanded_code
from tests.frontends.conftest import Front, Served
from tests.frontends.jmx_text import PLANS
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter


def test_lines_of_the_summariser() -> None:
    count = summary.Count(5, 0, 0.371, 20.4, 1.2, 89.9)
    assert summary.line(count) == (
        "summary =      5 in 00:00:00 =   13.5/s Avg:    20 Min:     1 Max:    89 Err:     0 (0.00%)"
    )
    assert summary.line(summary.Count(10, 1, 3661, 1, 1, 1), summary.Threads(2, 3, 1)) == (
        "summary +     10 in 01:01:01 =    0.0/s Avg:     1 Min:     1 Max:     1 Err:     1 (10.00%)"
        " Active: 2 Started: 3 Finished: 1"
    )
    assert summary.moment(1795255576.027) == "@ 2026 Nov 21 10:06:16 UTC (1795255576027)"


def customers(server: Served, threads: int, loops: int) -> list[str]:
    return [
        "-n",
        "-t",
        str(PLANS / "customers.jmx"),
        f"-Jport={server.port}",
        f"-Jthreads={threads}",
        f"-Jloops={loops}",
    ]


def test_a_run_sends_the_plan_and_nothing_else(serve: Callable[..., Served], front: Front) -> None:
    server = serve("--body-bytes", "12")
    code = jmeter.run(customers(server, 2, 3), front.context())
    assert code == demanded_code(front.store)
    assert server.ended()["requests"] == 30
    lines = front.out.getvalue().splitlines()
    assert lines[0] == "Creating summariser <summary>"
    assert lines[2].startswith("Starting standalone test @ ")
    assert lines[-3].startswith("summary =     30 in 00:00:")
    assert lines[-3].endswith("Err:     0 (0.00%)")
    assert lines[-1] == "... end of run"
    assert front.err.getvalue().splitlines()[-2].startswith("prony: ")


def test_wrong_responses_are_errors(serve: Callable[..., Served], front: Front) -> None:
    server = serve("--status", "500")
    jmeter.run(customers(server, 1, 2), front.context())
    assert "Err:    10 (100.00%)" in front.out.getvalue()


def rows_of(log: Path) -> list[dict[str, str]]:
    with log.open(newline="") as text:
        return list(csv.DictReader(text))


def test_the_log_has_a_row_for_every_request(
    serve: Callable[..., Served], front: Front, tmp_path: Path
) -> None:
    server, log = serve("--body-bytes", "12"), tmp_path / "out.jtl"
    jmeter.run([*customers(server, 2, 2), "-l", str(log)], front.context())
    rows = rows_of(log)
    assert len(rows) == server.ended()["requests"] == 20
    assert tuple(rows[0]) == COLUMNS
    assert {row["threadName"] for row in rows} == {"Clients 1-1", "Clients 1-2"}
    assert [row["label"] for row in rows].count("read") == 4
    read = next(row for row in rows if row["label"] == "read")
    assert read["URL"] == f"{server.url}/customerservice/customers/123?view=short+%26+plain"
    assert (read["responseCode"], read["responseMessage"], read["success"]) == ("200", "OK", "true")
    assert not list(tmp_path.glob(".jtl-*"))
    bad = serve("--status", "503")
    jmeter.run([*customers(bad, 1, 1), "-l", str(log)], front.context())
    added = rows_of(log)
    assert len(added) == 25
    assert (added[-1]["responseCode"], added[-1]["success"]) == ("503", "false")


def test_a_log_that_cannot_be_written_is_said_before_the_load(front: Front, tmp_path: Path) -> None:
    (tmp_path / "no").write_text("a file, and no folder")
    with pytest.raises(UsageError, match=rf"-l {tmp_path / 'no' / 'x'}: "):
        jmeter.run(
            ["-n", "-t", str(PLANS / "sessions.jmx"), "-l", str(tmp_path / "no" / "x")], front.context()
        )


def real(folder: Path, *argv: str) -> list[dict[str, str]]:
    """The same through JMeter itself; the rows of its log."""
    log = folder / "real.jtl"
    run_jmeter([*argv, "-l", str(log)], folder, cwd=folder)
    return rows_of(log)


@needs_jmeter
@pytest.mark.everyday
def test_jmeter_itself_sends_the_same_bytes(
    serve: Callable[..., Served], front: Front, tmp_path: Path
) -> None:
    theirs, ours = serve("--body-bytes", "12"), serve("--body-bytes", "12")
    methods = ["-n", "-t", str(PLANS / "methods.jmx")]
    real(tmp_path, *methods, f"-Jport={theirs.port}")
    (tmp_path / "real.jtl").unlink()
    jmeter.run([*methods, f"-Jport={ours.port}"], front.context())
    rows = real(tmp_path, *customers(theirs, 1, 2))
    log = tmp_path / "ours.jtl"
    jmeter.run([*customers(ours, 1, 2), "-l", str(log)], front.context())
    own = rows_of(log)
    assert len(rows) == len(own) == 10
    assert list(rows[0]) == list(own[0])
    same = (
        "label",
        "responseCode",
        "responseMessage",
        "threadName",
        "dataType",
        "success",
        "failureMessage",
        "bytes",
        "grpThreads",
        "allThreads",
        "IdleTime",
    )
    for one, other in zip(rows, own, strict=True):
        assert [one[name] for name in same] == [other[name] for name in same]
        assert one["URL"].replace(str(theirs.port), "") == other["URL"].replace(str(ours.port), "")
    counted = theirs.ended(), ours.ended()
    assert counted[0]["requests"] == counted[1]["requests"] == 26

    def plain(server: Served) -> bytes:
        same = server.recorded().replace(str(server.port).encode(), b"PORT")
        return re.sub(rb"\(Java/[^)]*\)", b"(Java)", same)

    assert plain(theirs) == plain(ours)


def test_the_page_of_a_run_is_written_where_jmeter_writes_its_dashboard(
    serve: Callable[..., Served], front: Front, tmp_path: Path
) -> None:
    page = tmp_path / "new" / "rep" / "index.html"
    argv = [*customers(serve(), 1, 1), "-l", str(tmp_path / "o.jtl"), "-e", "-o", str(page.parent)]
    jmeter.run(argv, front.context())
    assert page.read_text(encoding="utf-8").startswith("<!")
    assert f"{page} is Prony's page of the run" in front.err.getvalue()
    with pytest.raises(UsageError, match="already exists"):
        jmeter.run(argv, front.context())
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=rf"-o {tmp_path / 'file' / 'rep'}: "):
        jmeter.run([*argv[:-1], str(tmp_path / "file" / "rep")], front.context())
