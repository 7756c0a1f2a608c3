"""prony artillery: variables that are lists, of which each user draws a value when it starts."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.plan.workload import MOST_STEPS
from prony_frontends.artillery.translate import translate
from tests.frontends.artillery.test_run import requests
from tests.frontends.codes import refuses
from tests.frontends.conftest import Served, moved, offered
from tests.programs import program

ALIKE = """\
config:
  target: "{url}"
  phases: [{{duration: 1, arrivalCount: 1}}]
  variables:
    word: ["a b", "a b"]
    number: [1.5, 1.5]
    person: [{{name: "Ann", tags: [x, y]}}, {{name: "Ann", tags: [x, y]}}]
    on: [true, true]
scenarios:
  - flow:
      - get:
          url: "/{{{{ number }}}}/{{{{ person.name }}}}"
          qs: {{w: "{{{{ word }}}}"}}
          headers: {{X-W: "{{{{ word }}}}"}}
      - post:
          url: "/json"
          json:
            w: "{{{{ word }}}}"
            n: "{{{{ number }}}}"
            p: "{{{{ person }}}}"
            o: "{{{{ on }}}}"
            t: "{{{{ number }}}} {{{{ on }}}}"
      - get: {{url: "/less", ifTrue: "number < 1"}}
      - get: {{url: "/more", ifTrue: "number > 1"}}
      - loop:
          - get: {{url: "/tag/{{{{ $loopElement }}}}"}}
        over: person.tags
"""
"""Lists of equal values: whatever is drawn, the same goes out."""
DIFFERENT = """\
config:
  target: "{url}"
  phases: [{{duration: 1, arrivalCount: 60}}]
  variables: {{n: [1, 2, 3], word: ["a", "b"]}}
scenarios:
  - flow:
      - post:
          url: "/echo"
          json: {{n: "{{{{ n }}}}", w: "{{{{ word }}}}"}}
          capture: {{json: "$.n", as: got}}
      - post: {{url: "/second", json: {{n: "{{{{ n }}}}", got: "{{{{ got }}}}"}}}}
"""


def sent(server: Served) -> list[tuple[str, bytes, str]]:
    """Lines, bodies and the header of interest."""
    return [(line, body, headers.get("x-w", "")) for line, headers, body in requests(server.recorded())]


def test_a_value_is_what_it_is_wherever_it_stands(serve: Callable[..., Served], tmp_path: Path) -> None:
    server, file = serve(), tmp_path / "s.yml"
    file.write_text(ALIKE.format(url=server.url))
    made = translate(["run", str(file)])
    (scenario,) = made.trial.workload.scenarios
    assert set(scenario.variables) == {"drawn_word", "drawn_number", "drawn_person", "drawn_on"}
    offered(moved(made, server.port))
    server.ended()
    first, body, *rest = sent(server)
    assert first == ("GET /1.5/Ann?w=a+b HTTP/1.1", b"", "a b")
    assert body[1] == b'{"w":"a b","n":1.5,"p":{"name":"Ann","tags":["x","y"]},"o":true,"t":"1.5 true"}'
    assert [line.split()[1] for line, _, _ in rest] == ["/more", "/tag/x", "/tag/y"]


@pytest.mark.needs("artillery")
def test_artillery_itself_sends_the_same(serve: Callable[..., Served], tmp_path: Path) -> None:
    theirs, ours = serve(), serve()
    for name, server in (("theirs.yml", theirs), ("ours.yml", ours)):
        (tmp_path / name).write_text(ALIKE.format(url=server.url))
    subprocess.run(
        [program("artillery"), "run", "-q", str(tmp_path / "theirs.yml")],
        check=True, capture_output=True, timeout=240,
    )  # fmt: skip
    offered(moved(translate(["run", str(tmp_path / "ours.yml")]), ours.port))
    assert sent(ours) == sent(theirs)


def test_each_user_has_one_value_for_all_its_requests(serve: Callable[..., Served], tmp_path: Path) -> None:
    server, file = serve(), tmp_path / "s.yml"
    file.write_text(DIFFERENT.format(url=server.url))
    made = translate(["run", str(file)])
    assert len(made.trial.workload.scenarios) == 1
    report = offered(moved(made, server.port))
    server.ended()
    assert report.totals.completed == 120
    bodies = [json.loads(body) for line, body, _ in sent(server)]
    firsts = [body for body in bodies if "w" in body]
    assert len(firsts) == 60
    assert {body["n"] for body in firsts} == {1, 2, 3}
    assert {body["w"] for body in firsts} == {"a", "b"}
    assert all(body["got"] == body["n"] for body in bodies if "got" in body)


def test_as_many_combinations_as_there_are_are_one_scenario(tmp_path: Path) -> None:
    values = ", ".join(map(str, range(100)))
    (tmp_path / "s.yml").write_text(
        "config:\n  target: 'http://h:80'\n  phases: [{duration: 1, arrivalRate: 1}]\n"
        f"  variables: {{a: [{values}], b: [{values}], c: [{values}]}}\n"
        "scenarios:\n  - flow:\n      - get: {url: '/{{ a }}/{{ b }}/{{ c }}'}\n"
    )
    made = translate(["run", str(tmp_path / "s.yml")])
    assert len(made.trial.workload.scenarios) == 1
    assert len(made.trial.workload.feeders) == 3


def test_a_script_has_no_more_requests_than_the_engine_takes(tmp_path: Path) -> None:
    rust = (Path(__file__).parents[3] / "engine/src/check/scenario.rs").read_text()
    (most,) = re.findall(r"const MAX_STEPS: usize = ([\d_]+);", rust)
    assert int(most) == MOST_STEPS
    file = tmp_path / "s.yml"

    def written(count: int) -> list[str]:
        flows = "".join(f"      - get: {{url: /{number}}}\n" for number in range(count))
        phases = "phases: [{duration: 1, arrivalRate: 1}]"
        both = f"  - flow:\n{flows}  - flow:\n      - get: {{url: /}}\n"
        file.write_text(f"config: {{target: 'http://h:80', {phases}}}\nscenarios:\n{both}")
        return ["run", str(file)]

    assert len(translate(written(MOST_STEPS - 1)).trial.workload.scenarios) == 2
    for count in (MOST_STEPS, MOST_STEPS + 1):
        with refuses("limit", "1000 requests"):
            translate(written(count))
