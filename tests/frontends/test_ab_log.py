"""What ab prints of single requests: exact times, the first response's length, -g."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from prony_frontends.ab import run
from prony_frontends.ab.figures import AbFigures
from prony_frontends.ab.logged import LoggedTimes, gnuplot, kept, times, with_lengths
from prony_frontends.request_log import LoggedRequest
from tests.exit_codes import demanded_code
from tests.frontends.conftest import Front, Served

ROW = LoggedRequest(
    start_unix_ms=1_700_000_000_500, start_ns=1, latency_ns=9_000_000, service_ns=9_000_000,
    connect_ns=1_000_000, tls_ns=2_000_000, first_byte_ns=4_000_000, scenario="ab", step="request",
    step_index=0, method="GET", path="/", user=0, thread=0, status=200, error=None, bytes_out=80,
    bytes_in=160, body_bytes=64, users=1, branch=None, note=None,
)  # fmt: skip
LOST = replace(ROW, status=None, error="read", first_byte_ns=None)
REUSED = replace(ROW, connect_ns=None, tls_ns=None, body_bytes=65)


def test_connecting_lies_before_the_send_and_belongs_to_the_total() -> None:
    (first, second) = kept([ROW, LOST, REUSED])
    assert first == LoggedTimes(
        start_unix_s=1_700_000_000.497, connect_ms=3.0, processing_ms=9.0, waiting_ms=4.0, body_bytes=64
    )
    assert first.total_ms == 12.0
    assert (second.connect_ms, second.total_ms) == (0.0, 9.0)
    found = times([first, second])
    assert found is not None
    assert (found.connect.mean, found.total.most, found.waiting.mean) == (1.5, 12.0, 4.0)
    assert times([]) is None


def test_the_first_length_is_the_right_one() -> None:
    counted = AbFigures(
        seconds=1.0, complete=3, connect_failed=0, receive_failed=1, length_failed=7, exceptions=0,
        write_errors=0, other_status=0, kept_alive=0, document_bytes=1, transferred_bytes=1, sent_bytes=1,
        body_bytes=1,
    )  # fmt: skip
    found = with_lengths(counted, kept([ROW, REUSED, REUSED]), any_length=False, lost=1)
    assert (found.document_bytes, found.length_failed, found.body_bytes) == (64, 3, 194)
    assert with_lengths(counted, kept([ROW, REUSED]), any_length=True, lost=0).length_failed == 0
    assert with_lengths(counted, [], any_length=False, lost=0) == counted


def test_a_line_for_gnuplot() -> None:
    lines = list(gnuplot(kept([ROW, REUSED])))
    assert lines[0] == "starttime\tseconds\tctime\tdtime\tttime\twait"
    began = time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(1_700_000_000))
    assert lines[1:] == [f"{began}\t1700000000\t0\t9\t9\t4", f"{began}\t1700000000\t3\t9\t12\t4"]


def test_a_run_with_its_files(serve: Callable[..., Served], front: Front, tmp_path: Path) -> None:
    """A delay before the response is waiting, one between its bytes is not."""
    server = serve("--delay", "fixed:20ms", "--body-bytes", "10")
    tsv = tmp_path / "out.tsv"
    code = run(["-n", "12", "-c", "2", "-g", str(tsv), f"{server.url}/"], front.context())
    assert code == demanded_code(front.store)
    said = front.out.getvalue()
    waiting = re.search(r"^Waiting:\s+(\d+)", said, re.MULTILINE)
    assert waiting is not None
    assert int(waiting[1]) >= 19
    lines = tsv.read_text().splitlines()
    assert len(lines) == 13
    for line in lines[1:]:
        _began, seconds, connect, processing, total, wait = line.split("\t")
        assert int(seconds) > 1_700_000_000
        assert int(processing) >= int(wait) >= 19
        assert abs(int(connect) + int(processing) - int(total)) <= 1


def test_a_file_that_cannot_be_written_is_told_before_the_run(front: Front, tmp_path: Path) -> None:
    assert run(["-g", str(tmp_path / "no" / "x"), "http://127.0.0.1:9/"], front.context()) == 22
    assert "which cannot be written" in front.err.getvalue()
    assert front.out.getvalue() == ""
