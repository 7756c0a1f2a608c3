"""A cross-check: which check explains why another load generator disagrees with Prony."""

from __future__ import annotations

import pytest

from prony.compare.cross_check import PRONY, Run, opinions


def run(tool: str, requests: int, **changes: object) -> Run:
    values: dict[str, object] = {
        "tool": tool, "round": 1, "requests": requests, "errors": 0, "seconds": 1.0, "client_cpu_s": 0.3,
        "wall_s": 1.0, "counted": requests,
    }  # fmt: skip
    return Run(**(values | changes))  # type: ignore[arg-type]


def judged(*runs: Run) -> tuple[bool | None, str | None, str]:
    found = opinions([run(PRONY, 10_000), *runs], {"wrk": "4"}, 2)[1]
    return found.agrees, found.check, found.why


def test_what_agrees_needs_no_explanation() -> None:
    assert judged(run("wrk", 9_800), run("wrk", 10_200)) == (True, None, "")


@pytest.mark.parametrize(
    ("found", "check", "words"),
    [
        (run("wrk", 5_000, client_cpu_s=0.97), "client", "97% of its CPU"),
        (run("wrk", 5_000, errors=900), "errors", "900 of its 5000"),
        (run("wrk", 5_000, counted=9_000), "counts", "9000 by the server's"),
        (run("wrk", 0, failure="it ended with exit code 1: no"), "errors", "exit code 1"),
        (run("wrk", 5_000), "client", "the server counted 10,000/s under Prony's load"),
        (run("wrk", 15_000), None, "run more rounds"),
    ],
)
def test_a_difference_is_explained_by_a_check(found: Run, check: str | None, words: str) -> None:
    _, named, why = judged(found)
    assert named == check
    assert words in why


def test_pronys_own_finding_explains_too() -> None:
    own = run(PRONY, 10_000, conforms=False, finding=("client", "its CPU was full"), identifier="x")
    found = opinions([own, run("ab", 15_000)], {"ab": "2.3"}, 2)
    assert (found[1].check, found[1].why) == ("client", "in Prony's own run: its CPU was full")
