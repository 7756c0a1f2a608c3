"""Steps with more keys than Artillery reads, and steps that are no requests, do what they do there."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import PronyError
from prony.plan.step import Step
from prony_frontends.artillery import run
from prony_frontends.artillery.translate import translate
from tests.frontends.artillery.test_run import requests
from tests.frontends.artillery.test_translate import HEAD, entries
from tests.frontends.conftest import Front, Served
from tests.programs import program

SCRIPT = """\
config:
  target: "{url}"
  phases: [{{duration: 1, arrivalCount: 1}}]
before:
  flow:
    - get: {{url: /before}}
scenarios:
  - flow:
      - loop:
          - post: {{url: /kept}}
            capture: {{json: $.token, as: token}}
            headers: {{X-Lost: "1"}}
          - get: {{url: "/t/{{{{ token }}}}"}}
          - get: {{url: /never}}
            think: 0
          - put: {{url: "/n/{{{{ $randomNumber() }}}}/x"}}
        count: 2
      - if:
          condition: "{{{{ token }}}}"
          then: [{{get: {{url: /never, capture: {{json: $.other, as: other}}}}}}]
      - get: {{url: /never}}
"""
NO_URL = {"errors.an URL must be specified": 1, "vusers.failed": 1}


def asked(server: Served, file: Path) -> list[str]:
    """The lines of requests, one for each, with the digits that are drawn as N; and what users failed of."""
    counters = json.loads(file.with_suffix(".json").read_text())["aggregate"]["counters"]
    assert {key: n for key, n in counters.items() if key.startswith(("errors.", "vusers.failed"))} == NO_URL
    found = requests(server.recorded())
    assert not any("x-lost" in headers for _, headers, _ in found)
    return [re.sub(r"/n/[01]/", "/n/N/", line) for line, _, _ in found]


def begun(url: str, file: Path) -> list[str]:
    file.write_text(SCRIPT.format(url=url))
    return ["run", "-o", str(file.with_suffix(".json")), str(file)]


TURN = ["POST /kept HTTP/1.1", "GET /t/undefined HTTP/1.1", "PUT /n/N/x HTTP/1.1"]


def test_of_a_step_within_a_loop_the_first_key_is_read(
    serve: Callable[..., Served], front: Front, tmp_path: Path
) -> None:
    server, file = serve(), tmp_path / "s.yml"
    run(begun(server.url, file), front.context(exit_like_original=True))
    assert server.ended()["requests"] == 7
    assert asked(server, file) == ["GET /before HTTP/1.1", *TURN, *TURN]
    said = front.err.getvalue()
    for part in ("'post' the key 'capture'", "'think' the key 'get'", "'if' has no url"):
        assert part in said


@pytest.mark.needs("artillery")
def test_the_real_artillery_reads_it_so(serve: Callable[..., Served], tmp_path: Path) -> None:
    server, file = serve(), tmp_path / "s.yml"
    subprocess.run(
        [program("artillery"), *begun(server.url, file)], capture_output=True, timeout=240, check=True,
        env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
    )  # fmt: skip
    assert server.ended()["requests"] == 7
    assert asked(server, file) == ["GET /before HTTP/1.1", *TURN, *TURN]


NOT_RUN = {
    "{get: {url: /}, capture: {json: $.a, as: a}}": "a step with several keys (get, capture)",
    "{get: {url: /}, think: 1}": "start each step with its own -",
    "{get: /}": "url among them",
    "{post: {json: {}}}": "url among them",
}


@pytest.mark.parametrize("step", NOT_RUN)
def test_what_artillery_does_not_begin_is_refused(step: str, tmp_path: Path) -> None:
    with pytest.raises(PronyError, match=re.escape(NOT_RUN[step])):
        entries(tmp_path, f"- get: {{url: /first}}\n- {step}")


@pytest.mark.needs("artillery")
def test_the_real_artillery_does_not_begin_it(tmp_path: Path) -> None:
    for step in NOT_RUN:
        file = tmp_path / "s.yml"
        file.write_text(f"{HEAD}scenarios:\n  - flow:\n      - {step}\n")
        done = subprocess.run(
            [program("artillery"), "run", str(file)], capture_output=True, text=True, timeout=60, check=False,
            env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
        )  # fmt: skip
        assert done.returncode == 1
        assert "Scenario validation error" in done.stdout


def test_the_random_number_of_no_limits_is_0_or_1(tmp_path: Path) -> None:
    file = tmp_path / "s.yml"
    file.write_text(
        f"{HEAD}scenarios:\n  - flow:\n"
        "      - get: {url: '/{{ $randomNumber() }}/{{ $randomNumber(7) }}/{{ $randomNumber(9, 3) }}'}\n"
    )
    (step,) = translate(["run", str(file)]).trial.workload.scenarios[0].steps
    assert isinstance(step, Step)
    assert step.path == "/base/${random int 0 1}/${random int 0 7}/${random int 3 9}"


def test_a_target_that_is_an_expression_asks_for_the_flag(tmp_path: Path) -> None:
    file = tmp_path / "s.yml"
    expression = "{{ $processEnvironment.BASE || 'http://127.0.0.1:1' }}"
    file.write_text(f'config: {{target: "{expression}"}}\nscenarios: [{{flow: [{{get: {{url: /}}}}]}}]\n')
    with pytest.raises(PronyError, match=r"s\.yml:1: .* give --target URL"):
        translate(["run", str(file)])
    assert translate(["run", "-t", "http://127.0.0.1:2", str(file)]).target.url == "http://127.0.0.1:2"
