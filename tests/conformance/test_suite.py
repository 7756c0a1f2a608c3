"""The suite passes a correct server and fails each faulty one by the check that is about its fault."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from prony.errors import UsageError
from prony.evidence import conformance as evidence_of
from prony.evidence.conformance import CheckResult, CheckStatus
from prony.plan.response import Capture, Expectation
from prony.plan.step import Step
from prony.plan.workload import Scenario, Workload
from prony.server.build import Built
from prony.server.launch import launch
from prony_conformance import suite
from prony_conformance.suite import CHECKS
from prony_conformance.walk import walked_once

Make = Callable[..., Built]
Examine = Callable[..., dict[str, CheckResult]]

HELLO = Workload(
    name="hello",
    steps=(
        Step(
            name="hello",
            path="/",
            expect=Expectation(headers={"Content-Type": "text/plain"}, body_equals="Hello, World!"),
        ),
    ),
    conformance=(
        Step(name="unknown", path="/unknown", expect=Expectation(status=(404,))),
        Step(
            name="not acceptable",
            path="/",
            headers={"Accept": "image/x-none"},
            expect=Expectation(status=(406,)),
        ),
    ),
)
SLOW = HELLO.model_copy(update={"delay_ms": 30.0})
PERSON = '{"name":"${sequence}"}'
PEOPLE = Workload(
    name="people",
    steps=(
        Step(
            name="create",
            method="PUT",
            path="/p${sequence name=id}",
            body='{"name":"${sequence name=id}"}',
            expect=Expectation(status=(201,)),
            capture={"id": Capture(header="Location")},
        ),
        Step(name="read", path="/${id}", expect=Expectation(body_contains=('"name"',))),
        Step(name="delete", method="DELETE", path="/${id}", expect=Expectation()),
        Step(name="gone", path="/${id}", expect=Expectation(status=(404,))),
    ),
)
PREPARED = Workload(
    name="prepared",
    prepare=(
        Step(
            name="fill",
            method="PUT",
            path="/p${sequence}",
            body=PERSON,
            repeat=50,
            expect=Expectation(status=(201,)),
        ),
    ),
    steps=(Step(name="read", path="/p${random int 1 50}", expect=Expectation(body_contains=('"name"',))),),
    cleanup=(
        Step(
            name="empty", method="DELETE", path="/p${sequence}", repeat=50, expect=Expectation(status=(200,))
        ),
    ),
)


def failed(results: dict[str, CheckResult]) -> set[str]:
    return {name for name, result in results.items() if result.status is CheckStatus.FAILED}


@pytest.mark.parametrize("workload", [HELLO, SLOW, PEOPLE, PREPARED], ids=lambda workload: workload.name)
def test_a_correct_server_passes_everything(
    faulty_server: Make, examine: Examine, workload: Workload
) -> None:
    results = examine(faulty_server("--delay-ms", str(workload.delay_ms or 0), ready="{path: /}"), workload)
    assert failed(results) == set()
    assert {"start", *CHECKS, "stop"} <= set(results)
    assert ("prepare" in results, "clean-up" in results) == (bool(workload.prepare), bool(workload.cleanup))
    assert results["keep-alive"].found == "20 responses on 1 connection"
    assert results["pipelined"].status is CheckStatus.NOTED
    assert "both answered" in results["pipelined"].found
    assert "Server: BaseHTTP" in results["headers"].found
    assert results["oversized-header"].found == "status 431 at 64 KiB"
    assert results["delay"].status is (CheckStatus.PASSED if workload.delay_ms else CheckStatus.LEFT_OUT)


def test_over_tls_the_same_is_asked(engine: Make, examine: Examine) -> None:
    results = examine(engine("--tls", "--cert", "{tls_cert}", "--key", "{tls_key}", scheme="https"), HELLO)
    assert failed(results) == {"further", "unknown-path"}, "it answers every path alike"
    assert results["oversized-header"].found == "status 431 at 64 KiB"
    assert results["close"].found == "closed, announced"


@pytest.mark.parametrize(
    ("fault", "check", "part"),
    [
        ("--wrong-body", "answers", "hello: the body (13 bytes) differs"),
        ("--wrong-type", "answers", "header Content-Type is 'text/html'"),
        ("--any-path", "further", "unknown: status 200, expected 404"),
        ("--any-accept", "further", "not acceptable: status 200, expected 406"),
        ("--any-path", "unknown-path", "status 200"),
        ("--no-head", "head", "HEAD has the status 405, GET 200"),
        ("--head-without-type", "head", "lacks content-type"),
        ("--head-with-body", "head", "bytes after the response to HEAD: b'Hello"),
        ("--close-each", "keep-alive", "20 responses on 20 connections"),
        ("--ignore-close", "close", "still open after"),
        ("--chunks-for-all", "http-1.0", "Transfer-Encoding: chunked"),
        ("--accept-all-headers", "oversized-header", "status 200 at 4 MiB"),
        ("--silent-about-headers", "oversized-header", "to a header of 64 KiB: the connection"),
    ],
)
def test_a_fault_is_found_by_its_check(
    faulty_server: Make, examine: Examine, fault: str, check: str, part: str
) -> None:
    result = examine(faulty_server(fault), HELLO, check)[check]
    assert result.status is CheckStatus.FAILED
    assert part in result.found


@pytest.mark.parametrize("check", sorted(CHECKS))
def test_a_check_is_quiet_about_a_server_that_is_right(
    faulty_server: Make, examine: Examine, check: str
) -> None:
    results = examine(faulty_server(), HELLO, check)
    assert failed(results) == set()
    assert set(results) == {"start", check, "stop"}


def test_a_server_that_serves_few_at_once_fails_a_hundred(faulty_server: Make, examine: Examine) -> None:
    results = examine(faulty_server("--at-once", "20"), HELLO, "answers", "concurrent")
    assert failed(results) == {"concurrent"}
    assert "another status" in results["concurrent"].found
    assert "503" in results["concurrent"].found


@pytest.mark.parametrize("delay_ms", [0, 200])
def test_another_delay_than_the_declared_one_is_found(
    faulty_server: Make, examine: Examine, delay_ms: int
) -> None:
    assert failed(examine(faulty_server("--delay-ms", str(delay_ms)), SLOW, "delay")) == {"delay"}


@pytest.mark.parametrize(
    ("faults", "ceilings", "wrong"),
    [
        (["--close-after", "300"], "{closes_after: 300}", set()),
        (["--close-after", "300"], "{}", {"closes-after"}),
        (["--close-after", "5"], "{closes_after: 5}", set()),
        (["--close-after", "5"], "{}", {"keep-alive", "closes-after"}),
        ([], "{closes_after: 300}", {"closes-after"}),
    ],
)
def test_a_connection_lives_as_long_as_declared(
    faulty_server: Make, examine: Examine, faults: list[str], ceilings: str, wrong: set[str]
) -> None:
    results = examine(faulty_server(*faults, ceilings=ceilings), HELLO, "keep-alive", "closes-after")
    assert failed(results) == wrong


def test_a_server_that_dies_of_a_request_is_said_to_have_died(faulty_server: Make, examine: Examine) -> None:
    results = examine(faulty_server("--die-of-headers"), HELLO)
    assert failed(results) == {"oversized-header", "stop"}
    assert results["stop"].found == "exited during 'oversized-header': exit code 3"


def test_what_the_preparation_captured_is_known_to_checks_and_clean_up(
    faulty_server: Make, examine: Examine
) -> None:
    created = Step(
        name="create",
        method="PUT",
        path="/p${uuid}",
        body=PERSON,
        expect=Expectation(status=(201,)),
        capture={"id": Capture(header="Location")},
    )
    workload = Workload(
        name="captured",
        prepare=(created,),
        steps=(Step(name="read", path="/${id}", expect=Expectation(body_contains=('"name"',))),),
        cleanup=(Step(name="delete", method="DELETE", path="/${id}", expect=Expectation(status=(200,))),),
    )
    results = examine(faulty_server(), workload, "answers", "keep-alive", "concurrent")
    assert {name: result.status for name, result in results.items()} == dict.fromkeys(
        ("start", "prepare", "answers", "keep-alive", "concurrent", "clean-up", "stop"), CheckStatus.PASSED
    )


def test_a_preparation_that_fails_is_said_in_one_sentence(faulty_server: Make, examine: Examine) -> None:
    results = examine(faulty_server("--read-only"), PREPARED)
    assert list(results) == ["start", "prepare"]
    assert failed(results) == {"prepare"}
    assert results["prepare"].found == "50 of 50 requests failed: 50 x another status (50 x 405 in all)"


def test_a_server_that_does_not_start_is_a_result(built: Make, examine: Examine) -> None:
    results = examine(built("{python}", "-c", "raise SystemExit(7)"), HELLO)
    assert list(results) == ["start"]
    assert "exit code 7" in results["start"].found


@pytest.mark.parametrize(
    ("troubles", "check", "part"),
    [
        (["--wrong-body", "share=1"], "answers", "header Content-Type is 'text/html"),
        (["--truncate", "share=0.3"], "concurrent", "connection closed before a response"),
        (["--garbage", "share=0.3"], "concurrent", "not HTTP"),
        (["--reset", "share=0.3"], "concurrent", "connection reset"),
        (["--errors", "share=0.3,status=503"], "concurrent", "another status"),
        # Whether the close is seen before the next request goes out or after it is the kernel's affair.
        (
            ["--close-silently-after", "3"],
            "keep-alive",
            "closed before a response|connection reset|20 responses on 7 connections",
        ),
        (["--ignore-keep-alive"], "keep-alive", "on 20 connections"),
        (["--wrong-body", "share=0.3"], "concurrent", "another header"),
        ([], "unknown-path", "status 200"),
    ],
)
def test_scripted_trouble_is_found(
    engine: Make, examine: Examine, troubles: list[str], check: str, part: str
) -> None:
    result = examine(engine(*troubles), HELLO, check)[check]
    assert result.status is CheckStatus.FAILED
    assert re.search(part, result.found), result.found


def test_a_declared_deviation_is_shown_and_does_not_fail(engine: Make, examine: Examine) -> None:
    spec = '{unknown-path: "it answers every path alike", head: "in vain"}'
    results = examine(engine(deviates=spec), HELLO, "unknown-path", "head")
    assert results["unknown-path"].status is CheckStatus.DECLARED
    assert results["unknown-path"].found == "status 200 (declared: it answers every path alike)"
    assert "a deviation that did not occur" in results["head"].found


def test_a_deviation_may_be_declared_for_one_workload(engine: Make, examine: Examine) -> None:
    here = examine(engine(deviates='{hello/unknown-path: "alike"}'), HELLO, "unknown-path")
    assert here["unknown-path"].status is CheckStatus.DECLARED
    elsewhere = examine(engine(deviates='{json/unknown-path: "alike"}'), HELLO, "unknown-path")
    assert elsewhere["unknown-path"].status is CheckStatus.FAILED


def test_a_deviation_from_a_check_that_does_not_exist_is_refused(engine: Make, examine: Examine) -> None:
    with pytest.raises(UsageError, match=r"'heads', did you mean 'head'\?"):
        examine(engine(deviates="{heads: why}"), HELLO)


def test_a_running_server_is_asked_the_wanted_checks_and_left_running(engine: Make) -> None:
    built = engine()
    with launch(built) as server:
        server.wait_ready(timeout_s=60)
        found = suite.check(server, HELLO, only=("keep-alive", "answers"), http_version="1.1")
        assert [(one.check, one.status) for one in found.results] == [
            ("answers", CheckStatus.PASSED), ("keep-alive", CheckStatus.PASSED)
        ]  # fmt: skip
        assert server.alive()


def test_a_running_server_that_dies_is_a_result(faulty_server: Make) -> None:
    with launch(faulty_server("--die-of-headers")) as server:
        server.wait_ready(timeout_s=60)
        found = suite.check(server, HELLO, only=("oversized-header",), http_version="1.1")
    assert [one.check for one in found.failed] == ["oversized-header", "stop"]


def test_every_check_may_be_deviated_from() -> None:
    assert tuple(CHECKS) == evidence_of.CHECKS


def test_a_loop_is_walked_once() -> None:
    """The same steps again teach nothing, and may take minutes."""
    looped = HELLO.model_copy(update={"loops": 50})
    assert walked_once(looped) == HELLO
    scenarios = HELLO.model_copy(
        update={"steps": (), "scenarios": (Scenario(name="a", loops=9, steps=HELLO.steps),)}
    )
    assert [walk.loops for walk in walked_once(scenarios).walks] == [1]
