"""Ways to write a script that Artillery's parser and runner take, or do not take."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony_frontends.artillery import run
from prony_frontends.artillery.translate import translate
from tests.frontends.artillery.test_run import requests
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import Front, Served
from tests.programs import program

Serve = Callable[..., Served]
TABS = """\
config:
  target:\t"{url}"\t# beside the key
  plugins: [expect, statsd]
  phases: [{{duration: 1,\tarrivalCount: 1}}]\t
\t
scenarios:
  - flow:
      - get:\t{{url: "/tab"}}\t
      - post:
          url: /json\t# behind the value
          json: {{\t"a":\t1\t}}
\t# alone
"""
"""Tabs wherever they only separate, and plugins in a list."""
ASKED = [("GET /tab HTTP/1.1", b""), ("POST /json HTTP/1.1", b'{"a":1}')]
HEAD = 'config: {target: "http://127.0.0.1:1", phases: [{duration: 1, arrivalRate: 1}]}\n'


def asked(server: Served) -> list[tuple[str, bytes]]:
    server.ended()
    return [(line, body) for line, _, body in requests(server.recorded())]


def script(folder: Path, text: str) -> str:
    file = folder / "s.yml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_tabs_separate_and_a_list_of_plugins_is_passed_over(
    serve: Serve, front: Front, tmp_path: Path
) -> None:
    server = serve()
    file = script(tmp_path, TABS.format(url=server.url))
    assert run(["run", "-q", file], front.context(exit_like_original=True)) == 0, front.err.getvalue()
    assert "s.yml:3: config.plugins" in front.err.getvalue()
    assert asked(server) == ASKED


@pytest.mark.needs("artillery")
def test_the_real_artillery_sends_the_same(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    done = subprocess.run(
        [program("artillery"), "run", "-q", script(tmp_path, TABS.format(url=server.url))],
        capture_output=True, text=True, timeout=240, check=False,
        env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert asked(server) == ASKED


def test_a_json_script_may_be_indented_with_tabs(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text(
        '{\n\t"config": {\n\t\t"target": "http://127.0.0.1:1"\n\t},\n'
        '\t"scenarios": [\n\t\t{"flow": [{"get": {"url": "/a\\tb"}}]}\n\t]\n}\n'
    )
    assert translate(["run", str(file)]).target.port == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('config:\n\ttarget: "http://127.0.0.1:1"\n', "s.yml:2: this is not valid YAML"),
        (
            HEAD + "scenarios: [{flow: [{get: {url: /}}]}]\nconfig: {processor: p.js}\n",
            "s.yml:3: .*'config' is a duplicate",
        ),
        (
            HEAD + "scenarios:\n  - flow:\n      - think: {min: 1, max: 2}\n      - get: {url: /}\n",
            "s.yml:4: .*Artillery fails as well",
        ),
        (HEAD, "s.yml:1: no scenarios; .*--config FILE"),
        (HEAD + "scenarios: [{flow: []}, {flow: [{log: a}]}]\n", "at least one request"),
        (HEAD + "scenarios: [{name: a, requests: []}]\n", "a flow, a list of requests"),
    ],
)
def test_what_artillery_does_not_take(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"(?s){said}"):
        translate(["run", script(tmp_path, text)])


def test_a_key_of_a_merged_mapping_may_stand_again(tmp_path: Path) -> None:
    text = HEAD + (
        "x: &x {url: /a, name: n}\n"
        "scenarios: [{flow: [{get: {<<: *x, url: /b}}, {get: {<<: *x, url: /c}}]}]\n"
    )
    (walk,) = translate(["run", script(tmp_path, text)]).trial.workload.scenarios
    assert [getattr(step, "path", None) for step in walk.steps] == ["/b", "/c"]


def test_a_scenario_without_requests_keeps_its_share_of_the_users(tmp_path: Path) -> None:
    text = HEAD + "scenarios: [{flow: [], weight: 3}, {flow: [{get: {url: /}}]}]\n"
    made = translate(["run", script(tmp_path, text)])
    assert [one.weight for one in made.trial.workload.scenarios] == [3, 1]
    assert noted(made.notes, "no_requests")


@pytest.mark.parametrize("call", ["$randEmail()", "$rand()", " $randFullName( )"])
def test_values_of_fake_data_are_refused(tmp_path: Path, call: str) -> None:
    text = (
        'config: {target: "http://127.0.0.1:1", plugins: {fake-data: {}}}\n'
        f"scenarios: [{{flow: [{{post: {{url: /, json: {{a: 'x {{{{ {call} }}}}'}}}}}}]}}]\n"
    )
    with refuses("unsupported", "fake-data", line=2):
        translate(["run", script(tmp_path, text)])
    plain = text.replace(call, "$randomNumber(1, 2)")
    assert translate(["run", script(tmp_path, plain)]).notes
