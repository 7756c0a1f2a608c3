"""`prony results show` prints exactly what stood on the terminal when the command ended, and the page and the
JSON are those of the command: whatever is shown is derived from what is stored.
"""

from __future__ import annotations

import pytest

from tests.e2e.conftest import SHORTEST, Lab
from tests.exit_codes import demanded_code
from tests.load.test_load_models import server

PLAN = """
title: One server
servers: [one]
workloads: hello
parts:
  - {name: fixed, trials: 1, loads: {users: [1, 4]}, measured: {duration_s: 1}}
  - {name: open, trials: 1, loads: {rate_per_s: 100}, measured: {duration_s: 1}}
"""
SHORT = ("--window", "1s", "--warmup", "1s")
SLOW = ("--delay", "fixed:10ms")


@pytest.mark.parametrize(
    "words",
    [
        ("load", "URL", "-c", "4", "--warmup", "1s", "-d", "2s", "--request-parts"),
        ("load", "URL", "--rate", "50", "--warmup", "1s", "-d", "2s"),
        ("sweep", "URL", "--users", "1,2,4,8", "--trials", "1", *SHORT),
        ("capacity", "URL", "--slo", "p50<500ms", "--start", "50", "--highest", "100", *SHORT),
        ("compare", "one", "two", *SHORTEST, "--trials", "1"),
        ("compare", "one", "two", *SHORTEST, "--trials", "1", "--two-pass"),
        pytest.param(("run", "plan.yaml"), marks=pytest.mark.everyday),
        ("second-opinion", "URL", "--with", "wrk,ab", "-d", "1s", "--trials", "1"),
    ],
    ids=["closed", "open", "sweep", "capacity", "compare", "two-pass", "run", "second-opinion"],
)
@pytest.mark.rarely
def test_what_a_command_prints_is_printed_again_byte_by_byte(lab: Lab, words: tuple[str, ...]) -> None:
    lab.server("one", "--work", "50us")
    lab.server("two", "--work", "100us")
    (lab.folder / "plan.yaml").write_text(PLAN)
    page = lab.folder / "page.html"
    with server(*SLOW) as url:
        called = [url + "/" if word == "URL" else word for word in words]
        done = lab.run(*called, "--report", str(page))
    search = lab.json("results", "show", "latest")["parts"][0]["search"]
    held_per_s = None if search is None else search["held_per_s"]
    assert done.returncode == demanded_code(lab.db, held_per_s=held_per_s), done.stderr
    again = lab.run("results", "show", "latest", "--report", str(lab.folder / "again.html"))
    printed, _, _ = done.stdout.partition("\nNext: ")  # of the command that was typed, not of the result
    assert again.stdout.rstrip().encode() == printed.rstrip().encode()
    assert again.returncode == done.returncode
    assert (lab.folder / "again.html").read_bytes() == page.read_bytes()
    listed = lab.json("results", "list")["experiments"]
    assert [one["command"] for one in listed] == [words[0]], "one experiment, whatever it was"
