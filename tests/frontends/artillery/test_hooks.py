"""The sections before and after, and what is put together during the run: functions in them, URLs that are
values, requests that Artillery's client does not send, whole files, weights.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prony.errors import EnvironmentFault, UsageError
from prony.load import reference
from prony.plan.step import Block
from prony.plan.step import requests as steps_of
from prony_frontends.artillery import run
from tests.frontends.artillery.test_config import text
from tests.frontends.artillery.test_run import counted, requests, unordered
from tests.frontends.artillery.test_translate import script
from tests.frontends.codes import refuses
from tests.frontends.conftest import Front, Served, explained
from tests.programs import program

Serve = Callable[..., Served]

SOURCE = """\
'use strict';
module.exports = { begin, again, sign, close, pick };

function begin(context, ee, done) {
  context.vars.shop = { id: 7 };
  context.vars.turn = 0;
  console.log('prepared');
  return done();
}

function again(context, next) {
  context.vars.turn += 1;
  next(context.vars.turn < 2);
}

function sign(request, context, ee, next) {
  request.headers = { 'X-Signed': `${context.vars.token}-{{ shop.id }}` };
  next();
}

function pick(context, ee, done) {
  context.vars.way = '/picked/' + context.vars.shop.id;
  return done();
}

function close(context, ee, done) {
  console.log('closed', context.vars.token);
  return done();
}
"""
FLOW = """\
config:
  target: "{url}"
  processor: ./functions.js
  phases: [{{duration: 1, arrivalCount: 2}}]
before:
  flow:
    - function: begin
    - post:
        url: /echo
        json: {{token: t1, n: 4}}
        capture: [{{json: $.token, as: token}}, {{json: $.n, as: n}}]
    - loop: [{{get: {{url: "/setup/{{{{ turn }}}}"}}}}]
      whileTrue: again
    - get: {{url: /known, ifTrue: "n > 3"}}
after:
  flow:
    - get: {{url: "/drop/{{{{ shop.id }}}}", beforeRequest: sign}}
    - function: close
scenarios:
  - flow:
      - get: {{url: "/shop/{{{{ shop.id }}}}/{{{{ token }}}}", beforeRequest: sign}}
      - function: pick
      - get: {{url: "{{{{ way }}}}"}}
      - parallel:
          - get: {{url: /p}}
          - log: "all at once"
          - function: pick
          - loop: [{{get: {{url: /l}}}}, {{think: 0.01}}]
            count: 2
      - post: {{url: /echo, json: {{token: t2}}, capture: {{json: $.token, as: token}}}}
      - put: {{url: /last, json: {{t: "{{{{ token }}}}", n: "{{{{ n }}}}"}}}}
"""
BEFORE = ["/echo", "/setup/0", "/setup/1", "/known"]
EACH = ["/shop/7/t1", "/picked/7", "/p", "/l", "/l", "/echo", "/last"]
AFTER = ["/drop/7"]


def written(folder: Path, url: str) -> str:
    (folder / "functions.js").write_text(SOURCE)
    file = folder / "script.yml"
    file.write_text(FLOW.format(url=url))
    return str(file)


def paths(server: Served) -> list[str]:
    return [line.split(" ")[1] for line, _, _ in requests(server.recorded())]


def test_before_and_after_take_what_a_scenario_takes(serve: Serve, front: Front, tmp_path: Path) -> None:
    server, report = serve(), tmp_path / "r.json"
    argv = ["run", "-o", str(report), written(tmp_path, server.url)]
    assert run(argv, front.context(exit_like_original=True)) == 0, front.err.getvalue()
    assert server.ended()["requests"] == len(BEFORE) + 2 * len(EACH) + len(AFTER)
    sent = paths(server)
    assert sent[: len(BEFORE)] == BEFORE
    assert sorted(sent[len(BEFORE) : -1]) == sorted(2 * EACH)
    assert sent[-1:] == AFTER
    signed = [headers["x-signed"] for _, headers, _ in requests(server.recorded()) if "x-signed" in headers]
    assert signed == ["t1-7", "t1-7", "t1-7"]
    bodies = [body for line, _, body in requests(server.recorded()) if "/last" in line]
    assert bodies == 2 * [b'{"t":"t2","n":4}']
    out = front.out.getvalue()
    assert out.index("prepared") < out.index("closed t1")
    assert counted(report)["counters"]["vusers.completed"] == 2


@pytest.mark.needs("artillery")
def test_the_real_artillery_sends_the_same(serve: Serve, front: Front, tmp_path: Path) -> None:
    ours, theirs = serve(), serve()
    run(["run", written(tmp_path, ours.url)], front.context())
    done = subprocess.run(
        [program("artillery"), "run", written(tmp_path, theirs.url)],
        capture_output=True, text=True, timeout=240, check=False,
        env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert ours.ended()["requests"] == theirs.ended()["requests"]
    assert unordered(ours) == unordered(theirs)


def test_a_plan_has_the_sections_as_steps(tmp_path: Path) -> None:
    made = script(tmp_path, Path(written(tmp_path, "http://h:80")).read_text())
    assert explained(made) == made.trial
    prepare = made.trial.workload.prepare
    assert [step.path for step in steps_of(prepare)] == [
        "/echo",
        "/setup/${turn | text}",
        "/known",
    ]
    quiet = reference._for_reference(made.trial.workload)
    assert "call" not in quiet.model_dump_json(include={"scenarios"}, exclude_none=True)


def test_a_function_that_fails_before_ends_the_run(serve: Serve, front: Front, tmp_path: Path) -> None:
    server = serve()
    (tmp_path / "f.js").write_text("exports.f = (context, ee, done) => done(new Error('no luck'));")
    file = tmp_path / "s.yml"
    file.write_text(
        f"config: {{target: '{server.url}', processor: f.js, phases: [{{duration: 1, arrivalCount: 1}}]}}\n"
        "before: {flow: [{function: f}, {get: {url: /}}]}\nscenarios: [{flow: [{get: {url: /}}]}]\n"
    )
    with pytest.raises(EnvironmentFault, match=r"preparation.*errors\.no luck"):
        run(["run", str(file)], front.context())
    assert server.ended()["requests"] == 0


@pytest.mark.parametrize("section", ["{flow: [{log: begin}]}", "{flow: [{think: 1}]}", "{flow: []}"])
def test_a_section_that_sends_and_calls_nothing_is_left_out(tmp_path: Path, section: str) -> None:
    plain = text("http://h:80", "- get: {url: /}")
    assert script(tmp_path, f"{plain}before: {section}\n").trial == script(tmp_path, plain).trial


def test_functions_without_a_processor_are_passed_over_and_counted(
    serve: Serve, front: Front, tmp_path: Path
) -> None:
    server, report, file = serve(), tmp_path / "r.json", tmp_path / "s.yml"
    file.write_text(text(server.url, "- function: f\n- get: {url: /a, beforeRequest: g, afterResponse: [h]}"))
    assert run(["run", "-o", str(report), str(file)], front.context(exit_like_original=True)) == 0
    assert server.ended()["requests"] == 2
    found = counted(report)["counters"]
    assert (found['errors.Undefined function "f"'], found["vusers.completed"]) == (2, 2)
    assert "s.yml:6: no config.processor: f " in front.err.getvalue()
    assert "WARNING: custom function g could not be found" in front.out.getvalue()


URLS = """\
- get: {url: "{{ page }}", headers: {X-Page: "{{ page }}"}}
- post: {url: /echo, json: {next: "/next?a=1"}, capture: {json: $.next, as: next}}
- get: {url: "{{ next }}"}
- get: {url: "{{ target }}/whole"}
"""


def test_urls_that_are_values(serve: Serve, front: Front, tmp_path: Path) -> None:
    server, file = serve(), tmp_path / "s.yml"
    (tmp_path / "pages.csv").write_text("/one,x\n")
    config = "  payload: {path: pages.csv, fields: [page], order: sequence}\n"
    file.write_text(text(server.url, URLS, config))
    assert run(["run", str(file)], front.context(exit_like_original=True)) == 0
    assert server.ended()["requests"] == 8
    assert sorted(paths(server)) == sorted(2 * ["/one", "/echo", "/next?a=1", "/whole"])
    pages = [headers["x-page"] for _, headers, _ in requests(server.recorded()) if "x-page" in headers]
    assert pages == ["/one", "/one"]


def test_values_that_no_function_names_are_in_requests_with_functions(tmp_path: Path) -> None:
    (tmp_path / "f.js").write_text("exports.f = (request, context, ee, next) => next();")
    steps = (
        "- get: {url: /a, capture: {json: $.x, as: x}}\n- get: {url: '/{{ x }}/{{ kind }}', beforeRequest: f}"
    )
    config = "  processor: ./f.js\n  variables: {kind: [red, blue]}\n"
    made = script(tmp_path, text("http://h:80", steps, config))
    calls = [
        entry.call
        for entry in made.trial.workload.scenarios[0].steps
        if isinstance(entry, Block) and entry.call
    ]
    assert set(calls[0].give) == {"x", "kind"}
    assert made.trial.workload.scenarios[0].variables == {"kind": "${list_kind.value}", "x": "null"}


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("get: {url: /x, json: {a: 1}}", "ERR_GOT_REQUEST_ERROR"),
        ("post: {url: /x, body: {a: 1}}", "ERR_GOT_REQUEST_ERROR"),
        ("get: {url: '/{{ $nothing() }}'}", "Invalid URL - undefined"),
        ("get: {url: nowhere}", "Invalid URL - nowhere"),
    ],
)
def test_what_artillerys_users_fail_at_fails_ours(
    serve: Serve, front: Front, tmp_path: Path, step: str, error: str
) -> None:
    server, report, file = serve(), tmp_path / "r.json", tmp_path / "s.yml"
    file.write_text(text(server.url, f"- get: {{url: /a}}\n- {step}\n- get: {{url: /never}}"))
    assert run(["run", "-o", str(report), str(file)], front.context(exit_like_original=True)) == 0
    assert server.ended()["requests"] == 2
    found = counted(report)["counters"]
    assert (found["vusers.created"], found["vusers.failed"]) == (2, 2)
    assert found[f"errors.{error}"] == 2
    assert f"(errors.{error})" in front.err.getvalue()


FAILING = """\
config: {{target: "{url}", phases: [{{duration: 1, arrivalCount: 2}}]}}
scenarios:
  - flow:
      - function: nowhere
      - get: {{url: /a, beforeRequest: nothing}}
      - get: {{url: /x, json: {{a: 1}}}}
      - get: {{url: /never}}
"""


@pytest.mark.needs("artillery")
def test_the_real_artillery_counts_the_same_errors(serve: Serve, front: Front, tmp_path: Path) -> None:
    ours, theirs = serve(), serve()
    mine, its, file = tmp_path / "mine.json", tmp_path / "its.json", tmp_path / "s.yml"
    file.write_text(FAILING.format(url=ours.url))
    run(["run", "-o", str(mine), str(file)], front.context())
    file.write_text(FAILING.format(url=theirs.url))
    subprocess.run(
        [program("artillery"), "run", "-o", str(its), str(file)],
        capture_output=True, text=True, timeout=240, check=False,
        env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
    )  # fmt: skip
    assert ours.ended()["requests"] == theirs.ended()["requests"] == 2
    wanted = {
        name: count
        for name, count in counted(its)["counters"].items()
        if re.match(r"errors\.|vusers\.(created|failed|completed)$|http\.(requests|codes)", name)
    }
    assert any("nowhere" in name for name in wanted)
    found = counted(mine)["counters"]
    assert {name: found.get(name) for name in wanted} == wanted


def test_a_whole_file_is_a_variable(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("name,age\nAnn,3\nBob,x\n")
    config = (
        "  payload: {path: users.csv, fields: [who, age], skipHeader: true, loadAll: true, name: users}\n"
    )
    steps = (
        "- loop: [{post: {url: '/{{ $loopElement.who }}', json: '{{ $loopElement }}'}}]\n  over: users\n"
        "- get: {url: '/{{ users[1].who }}'}"
    )
    made = script(tmp_path, text("http://h:80", steps, config))
    sent = made.trial.workload.scenarios[0].requests
    assert [step.path for step in sent] == ["/Ann", "/Bob", "/Bob"]
    assert json.loads(sent[0].body or "") == {"who": "Ann", "age": 3}
    assert not made.trial.workload.feeders


def rows_given(tmp_path: Path, rows: str) -> dict[str, Any]:
    """What the functions of a script find around them whose file has these rows."""
    (tmp_path / "users.csv").write_text(rows, encoding="utf-8")
    (tmp_path / "p.js").write_text("exports.f = (context, ee, done) => { context.vars.who = 1; done(); };")
    config = (
        "  payload: {path: users.csv, loadAll: true, name: users}\n  processor: ./p.js\n  variables: {n: 7}\n"
    )
    made = script(tmp_path, text("http://h:80", "- function: f\n- get: {url: /}", config)).trial.script
    assert made is not None
    given: dict[str, Any] = json.loads(made.args[0])
    return given


def test_a_whole_file_goes_to_functions_apart_from_the_variables(tmp_path: Path) -> None:
    """Each user has variables of their own, which are read anew; a file is read once."""
    given = rows_given(tmp_path, "Ann,3\n")
    assert given["rows"] == {"users": [["Ann", 3]]}
    assert given["variables"]["n"] == 7
    assert "users" not in given["variables"]


def test_only_what_is_a_number_in_javascript_is_cast(tmp_path: Path) -> None:
    numbers = {
        "0": 0, "-1.5": -1.5, "1e3": 1000, ".5": 0.5, "5.": 5, "-.5": -0.5,
        "007": 7, "-07": -7, "+1": 1, "0x1": 0,
    }  # fmt: skip
    texts = ("1_000", "-inf", "-nan", "1e999", "\u0661", "-", ".", "1e")
    given = rows_given(tmp_path, "\n".join([*numbers, *texts]))
    assert given["rows"]["users"] == [[one] for one in (*numbers.values(), *texts)]


def test_columns_by_a_sign_that_is_not_of_ascii(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("a€b,c\nd€\n", encoding="utf-8")
    config = "  payload: {path: p.csv, fields: [x, y], delimiter: '€'}\n"
    (feeder,) = script(
        tmp_path, text("http://h:80", "- get: {url: '/{{ y }}'}", config)
    ).trial.workload.feeders.values()
    assert feeder.rows == (("a", "b,c"), ("d", ""))


def test_weights_are_read_as_whole_numbers(tmp_path: Path) -> None:
    def weights(*given: str) -> list[tuple[str, float]]:
        scenarios = "".join(
            f"  - {{name: s{place}, weight: {weight}, flow: [{{get: {{url: /}}}}]}}\n"
            for place, weight in enumerate(given)
        )
        head = "config: {target: 'http://h', phases: [{duration: 1, arrivalCount: 1}]}\nscenarios:\n"
        made = script(tmp_path, head + scenarios)
        return [(one.name, one.weight) for one in made.trial.workload.scenarios]

    assert weights("'30%'", "2.9", "0") == [("s0", 30.0), ("s1", 2.0)]
    assert weights("0.7", "0.3") == [("s0", 0.7), ("s1", 0.3)]
    assert weights("0.7", "0") == [("s0", 0.7)]
    with refuses("unsupported", "weight", line=2):
        weights("0", "none")


def test_a_scenario_is_chosen_by_name_or_expression(tmp_path: Path) -> None:
    whole = (
        "config: {target: 'http://h', phases: [{duration: 1, arrivalCount: 1}]}\nscenarios:\n"
        "  - {name: buy one, flow: [{get: {url: /}}]}\n  - {name: buy two, flow: [{get: {url: /}}]}\n"
    )
    for wanted in ("buy one", "^buy o"):
        (only,) = script(tmp_path, whole, "--scenario-name", wanted).trial.workload.scenarios
        assert only.name == "buy one"
    longer = whole + "  - {name: one, flow: [{get: {url: /}}]}\n"
    (only,) = script(tmp_path, longer, "--scenario-name", "one").trial.workload.scenarios
    assert only.name == "one"
    with pytest.raises(UsageError, match="--scenario-name 'buy' matches 2"):
        script(tmp_path, whole, "--scenario-name", "buy")


def test_what_stays_refused(tmp_path: Path) -> None:
    (tmp_path / "p.ts").write_text("export const f = 1;")
    with refuses("unsupported", "TypeScript", "npx esbuild"):
        script(tmp_path, text("http://h:80", "- function: f", "  processor: ./p.ts\n"))
