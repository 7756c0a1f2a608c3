"""Entry 32: two servers with different responses are compared. Real trials, stored and shown by the CLI."""

from __future__ import annotations

from prony.host.fingerprint import fingerprint
from prony.judge.finding import Kind
from prony_selftest.faults.model import Setup, hello
from prony_selftest.faults.single_trial import EntryResult
from prony_selftest.faults.stored import FEW, WINDOW, keep, shown
from prony_selftest.faults.trial import run_setup

WORK = ("--work", "200us")
OTHER_PAGE = (*WORK, "--body-bytes", "32")
BLOCKS = 3


def different_responses(_tools: bool) -> EntryResult:
    """32: two servers send different responses."""
    reports, failures = [], []
    for serve, wanted in ((OTHER_PAGE, False), (WORK, True)):
        trials = [
            (name, run_setup(Setup(serve=words, load=FEW, measured=WINDOW, workload=hello(expect=False))))
            for _ in range(BLOCKS)
            for name, words in (("a", WORK), ("b", serve))
        ]
        with shown() as commands:
            identifier = keep(commands.store, trials, fingerprint({}), FEW)
            (part,) = commands.json("results", "show", identifier)["parts"]
        finding = {group["check"]: group for group in part["findings"]}.get("responses")
        conforms = finding is None or finding["kind"] != Kind.NOT_CONFORMING
        reports.append("no finding" if finding is None else finding["reasons"][0])
        if conforms is not wanted:
            failures.append(f"responses conform: {conforms}, expected {wanted}")
        if not wanted and part["pairs"]:
            failures.append("a ratio of different work is printed")
    return EntryResult(
        32,
        "two servers send different responses",
        "one server sends 32 bytes and the other 64, and their rates are divided by each other",
        other_tools="each tool measures one server",
        reported=f"responses: {reports[0]}",
        clean=reports[1],
        failures=tuple(failures),
    )
