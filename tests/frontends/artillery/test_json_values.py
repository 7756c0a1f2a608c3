"""Captured values as JSON: loops over lists, parts of structures, values put into JSON as they are, and what
`before` hands on.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault
from prony_frontends.artillery import run
from prony_frontends.artillery.translate import translate
from tests.frontends.artillery.test_run import requests
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import Front, Served
from tests.programs import program

Serve = Callable[..., Served]
SCRIPT = """\
config:
  target: "{url}"
  phases: [{{duration: 1, arrivalCount: 1}}]
  variables: {{known: "of the script"}}
  plugins: {{expect: {{}}}}
before:
  flow:
    - post:
        url: "/echo?status=404"
        json: {{token: "to ken", n: 5, list: [1, "b"], o: {{k: "v ${{x}}"}}, known: "of before"}}
        expect: {{statusCode: 200}}
        capture:
          - {{json: $.token, as: token}}
          - {{json: $.n, as: num}}
          - {{json: $.list, as: blist}}
          - {{json: $.o, as: bo}}
          - {{json: $.known, as: known}}
after:
  flow:
    - post: {{url: "/after/{{{{ num }}}}", json: {{t: "{{{{ token }}}}", n: "{{{{ num }}}}"}}}}
scenarios:
  - flow:
      - post:
          url: "/tok/{{{{ num }}}}"
          json: {{t: "{{{{ token }}}}", n: "{{{{ num }}}}", l: "{{{{ blist }}}}", k: "{{{{ bo.k }}}}",
                 w: "{{{{ known }}}}"}}
      - loop: [{{get: {{url: "/b/{{{{ $loopElement }}}}"}}}}]
        over: blist
      - post:
          url: /echo
          json: {{items: [{{id: 1, n: "a b"}}, {{id: 2, n: c}}], ids: [x, "y z", null], s: t,
                 u: {{name: bo, z: 1, a: [7]}}}}
          capture:
            - {{json: $.items, as: items}}
            - {{json: $.ids, as: ids}}
            - {{json: $.u, as: u}}
            - {{json: "$.items[*].id", as: all, multiple: false}}
            - {{json: "$.items[1:2].id", as: slice, multiple: false}}
            - {{json: "$.s", as: one, multiple: false}}
            - {{json: "$.zz[*]", as: none, multiple: false, strict: false}}
            - {{json: "$.u.z", as: z}}
            - {{regexp: '"s":"(.)"', group: 1, as: letter}}
      - loop:
          - put:
              url: "/l/{{{{ $loopElement.id }}}}/{{{{ $loopCount }}}}"
              json: {{e: "{{{{ $loopElement }}}}", i: "{{{{ $loopElement.id }}}}",
                     t: "x{{{{ $loopElement.n }}}}y"}}
        over: items
      - loop: [{{get: {{url: "/i/{{{{ $loopElement }}}}"}}}}]
        over: ids
      - loop: [{{get: {{url: /never}}}}]
        over: u
      - loop: [{{get: {{url: "/m/{{{{ $loopElement }}}}"}}}}]
        over: all
      - loop: [{{get: {{url: "/part/{{{{ $loopElement }}}}"}}}}]
        over: u.a
      - loop:
          - loop: [{{get: {{url: "/in/{{{{ it.id }}}}/{{{{ c }}}}/{{{{ $loopElement }}}}"}}}}]
            over: ids
        over: items
        loopElement: it
        loopValue: c
      - post:
          url: /p
          json: {{whole: "{{{{ items }}}}", part: "{{{{ u.name }}}}", all: "{{{{ all }}}}",
                 slice: "{{{{ slice }}}}", one: "{{{{ one }}}}", none: "{{{{ none }}}}",
                 txt: "-{{{{ items }}}}-{{{{ none }}}}", idx: "{{{{ items[1].id }}}}", z: "{{{{ z }}}}",
                 u: "{{{{ u }}}}", letter: "{{{{ letter }}}}"}}
      - get: {{url: "/q/{{{{ u.name }}}}?x={{{{ items[0].n }}}}", headers: {{X-A: "{{{{ items[0].n }}}}"}}}}
      - get: {{url: /if, ifTrue: "z == 1"}}
      - get: {{url: /ifnot, ifTrue: "z > 1"}}
"""
ASKED = [
    "POST /echo?status=404", "POST /tok/5", "GET /b/1", "GET /b/b", "POST /echo", "PUT /l/1/0", "PUT /l/2/1",
    "GET /i/x", "GET /i/y%20z", "GET /i/null", "GET /m/1", "GET /m/2", "GET /part/7",
    *(f"GET /in/{one}" for one in ("1/0/x", "1/0/y%20z", "1/0/null", "2/1/x", "2/1/y%20z", "2/1/null")),
    "POST /p", "GET /q/bo?x=a%20b", "GET /if", "POST /after/5",
]  # fmt: skip
BODIES = {
    "/tok/5": b'{"t":"to ken","n":5,"l":[1,"b"],"k":"v ${x}","w":"of the script"}',
    "/l/1/0": b'{"e":{"id":1,"n":"a b"},"i":1,"t":"xa by"}',
    "/p": b'{"whole":[{"id":1,"n":"a b"},{"id":2,"n":"c"}],"part":"bo","all":[1,2],"slice":[2],"one":"t",'
    b'"none":"","txt":"-[{\\"id\\":1,\\"n\\":\\"a b\\"},{\\"id\\":2,\\"n\\":\\"c\\"}]-","idx":2,"z":1,'
    b'"u":{"name":"bo","z":1,"a":[7]},"letter":"t"}',
    "/after/5": b'{"t":"to ken","n":5}',
}


def script(folder: Path, url: str) -> str:
    file = folder / "kept.yml"
    file.write_text(SCRIPT.format(url=url), encoding="utf-8")
    return str(file)


def test_structures_and_what_before_hands_on(serve: Serve, front: Front, tmp_path: Path) -> None:
    server = serve()
    argv = ["run", "-q", script(tmp_path, server.url)]
    assert run(argv, front.context(exit_like_original=True)) == 0, front.err.getvalue()
    server.ended()
    sent = requests(server.recorded())
    assert [line.removesuffix(" HTTP/1.1") for line, _, _ in sent] == ASKED
    bodies = {line.split(" ")[1]: body for line, _, body in sent if body}
    assert {path: bodies[path] for path in BODIES} == BODIES
    (header,) = [headers["x-a"] for line, headers, _ in sent if "/q/" in line]
    assert header == "a b"


@pytest.mark.needs("artillery")
def test_the_real_artillery_sends_the_same(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    done = subprocess.run(
        [program("artillery"), "run", "-q", script(tmp_path, server.url)],
        capture_output=True, text=True, timeout=240,
        env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    server.ended()
    sent = requests(server.recorded())
    assert [line.removesuffix(" HTTP/1.1") for line, _, _ in sent] == ASKED
    bodies = {line.split(" ")[1]: body for line, _, body in sent if body}
    assert {path: bodies[path] for path in BODIES} == BODIES


def test_a_before_that_fails_ends_it(serve: Serve, front: Front, tmp_path: Path) -> None:
    server = serve()
    file = tmp_path / "s.yml"
    file.write_text(
        f"config: {{target: '{server.url}', phases: [{{duration: 1, arrivalCount: 1}}]}}\n"
        "before: {flow: [{get: {url: /first, capture: {json: $.token, as: token}}}]}\n"
        "scenarios: [{flow: [{get: {url: '/{{ token }}'}}]}]\n"
    )
    with pytest.raises(EnvironmentFault, match="nothing to capture"):
        run(["run", str(file)], front.context())
    assert server.ended()["requests"] == 1


def test_a_loop_over_a_name_that_is_no_list_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "s.yml"
    file.write_text(
        "config: {target: 'http://h', phases: [{duration: 1, arrivalCount: 1}]}\n"
        "scenarios: [{flow: [{get: {url: /, capture: {header: etag, as: t}}},\n"
        " {loop: [{get: {url: /}}], over: other}]}]\n"
    )
    with refuses("unsupported", "loop", "other", line=3):
        translate(["run", str(file)])


def test_a_value_that_is_only_a_text_is_kept_as_one(tmp_path: Path) -> None:
    file = tmp_path / "s.yml"
    file.write_text(
        "config: {target: 'http://h', phases: [{duration: 1, arrivalCount: 1}]}\n"
        "scenarios: [{flow: [{get: {url: /, capture: [{json: $.a, as: a}, {json: $.b, as: b}]}},\n"
        " {post: {url: '/{{ a }}', json: {x: 'a {{ a }}', b: '{{ b }}'}}}]}]\n"
    )
    first, second = translate(["run", str(file)]).trial.workload.scenarios[0].requests
    assert [one.as_json for one in first.capture.values()] == [False, True]
    assert (second.path, second.body) == ("/${a}", '{"x":"a ${a | json}","b":${b}}')
    file.write_text(file.read_text().replace("{{ b }}", "{{ c.d }}"))
    made = translate(["run", str(file)])
    assert made.trial.workload.scenarios[0].requests[1].body == '{"x":"a ${a | json}"}'
    assert noted(made.notes, "undefined", "'c.d'")


def test_a_match_may_name_values_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,age\nbob,7\n")
    file = tmp_path / "s.yml"
    file.write_text(
        "config:\n  target: 'http://h'\n  phases: [{duration: 1, arrivalCount: 1}]\n  variables: {n: 5}\n"
        "  payload: {path: people.csv, fields: [name, age], skipHeader: true}\n"
        "scenarios:\n  - flow:\n"
        "      - get: {url: /, capture: {json: $.id, as: id},\n"
        "              match: [{json: $.name, value: '{{ name }}'}, {json: $.n, value: '{{ n }}'},\n"
        "                      {json: $.age, value: '{{ age }}'}]}\n"
        "      - get: {url: '/{{ id }}', match: {json: $.id, value: '{{ id }}'}}\n"
    )
    first, second = translate(["run", str(file)]).trial.workload.scenarios[0].requests
    assert first.expect is not None
    assert second.expect is not None
    assert first.expect.json_values == {"/n": 5}
    assert first.expect.json_filled == {"/name": '"${payload1.name | json}"', "/age": "${payload1.age}"}
    assert second.expect.json_filled == {"/id": "${id}"}
    assert (first.capture["id"].as_json, second.path) == (True, "/${id | text}")
