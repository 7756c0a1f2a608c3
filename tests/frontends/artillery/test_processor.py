"""A processor's functions: what is known of them before a run, and what they do beside the real Artillery."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from prony.errors import UsageError
from prony.load import reference
from prony.plan.step import Block
from prony_frontends.artillery import run
from prony_frontends.artillery.processor import NODES, THERE, Processor
from prony_frontends.base import Reason, Refused
from tests.frontends.artillery.test_run import counted, unordered
from tests.frontends.artillery.test_translate import script
from tests.frontends.codes import refuses
from tests.frontends.conftest import Front, Served, explained
from tests.programs import program

Serve = Callable[..., Served]
ROOT = Path(__file__).resolve().parents[3]

SOURCE = """\
'use strict';
// const faker = require('faker');
const { randomUUID } = require('crypto');
const shared = require('./shared');

module.exports = { begin, sign, look, again, enough, close, asynchronous };

function begin(context, ee, done) {
  context.vars.name = shared.prefix + context.vars.who;
  context.vars.list = [{ id: 1 }, { id: 2 }];
  context.vars.turn = 0;
  if (randomUUID().length !== 36 || context.scenario.name !== 'shop') return done(new Error('surroundings'));
  ee.emit('counter', 'begun', 1);
  return done();
}

function sign(request, context, ee, next) {
  request.headers = request.headers || {};
  request.headers['X-Signed'] = `${context.vars.name}-{{ n }}`;
  if (request.json) request.json.added = [context.vars.turn, '{{ name }}'];
  if (request.url.endsWith('/moved')) request.url = '/elsewhere?n={{ n }}';
  next();
}

function look(request, response, context, ee, next) {
  context.vars.seen = JSON.parse(response.body).b + response.statusCode;
  ee.emit('histogram', 'looked', 1.5);
  return next();
}

function again(context, next) {
  context.vars.turn += 1;
  next(context.vars.turn < 3);
}

function enough(values) {
  return values.turn >= 3;
}

async function asynchronous(context, ee) {
  await null;
  context.vars.later = { at: [7] };
}

function close(context, ee, done) {
  ee.emit('counter', 'closed', 2);
  return done();
}
"""
FLOW = """\
config:
  target: "{url}"
  processor: ./functions.js
  phases: [{{duration: 1, arrivalCount: 2}}]
  variables: {{n: 5, who: me}}
scenarios:
  - name: shop
    beforeScenario: begin
    afterScenario: [close]
    beforeRequest: sign
    flow:
      - get: {{url: "/a/{{{{ name }}}}"}}
      - post:
          url: "/echo"
          json: {{b: "{{{{ n }}}}", c: "x{{{{ n }}}}"}}
          capture: {{json: $.c, as: c}}
          afterResponse: look
      - get: {{url: "/moved"}}
      - get: {{url: "/seen/{{{{ seen }}}}/{{{{ c }}}}", headers: {{X-C: "{{{{ c }}}}"}}}}
      - loop:
          - get: {{url: "/turn/{{{{ turn }}}}/{{{{ $loopCount }}}}"}}
        whileTrue: again
      - loop:
          - put: {{url: "/item", json: {{id: "{{{{ $loopElement.id }}}}", all: "{{{{ list }}}}"}}}}
        over: list
      - function: asynchronous
      - get: {{url: "/later/{{{{ later.at[0] }}}}", ifTrue: enough}}
      - post: {{url: "/form", form: {{a: "b {{{{ n }}}}"}}, qs: {{q: "{{{{ n }}}}"}}}}
"""
SENT_EACH = 11
"""a, echo, moved, seen, three turns, two items, later, form."""


def written(folder: Path, url: str, flow: str = FLOW, source: str = SOURCE) -> str:
    (folder / "functions.js").write_text(source)
    (folder / "shared.js").write_text("exports.prefix = 'p-';\n")
    file = folder / "script.yml"
    file.write_text(flow.format(url=url))
    return str(file)


def known(source: str) -> Processor:
    return Processor(Path("p.js"), source)


def test_what_a_source_names() -> None:
    one = known(
        "// vars.never\nfunction f(context) { context.vars.a = context.vars['b-c'] + process.env.HOME; }"
        "\nconst g = async () => 'http://there/'; exports.h = 1; "
        "const at = { i: (x) => 1, j(y) { } }; let token = (1 + 2);"
    )
    assert one.names == {"a", "b-c"}
    assert not one.names_any
    assert one.environment == {"HOME"}
    assert all(one.has_function(name) for name in ("f", "g", "h", "i", "j"))
    assert not any(one.has_function(name) for name in ("context", "token", "a", "kind == 'red'"))
    for source in ("const v = context.vars;", "context.vars[name] = 1", "f(context.vars)"):
        assert known(source).names_any, source


@pytest.mark.parametrize(
    ("source", "code", "name", "line"),
    [
        ("\nconst faker = require('faker');", "unsupported", "faker", 2),
        ("import http from 'http';", "unsupported", "http", 1),
        ("exports.f = async () => { await import('axios'); }", "unsupported", "axios", 1),
        ("require('./missing');", "no_file", "./missing", 1),
        ("require('..');", "no_file", "..", 1),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    tmp_path: Path, source: str, code: Reason, name: str, line: int
) -> None:
    with refuses(code, f"require('{name}')", line=line):
        script(tmp_path, Path(written(tmp_path, "http://h:80", source=source)).read_text())


@pytest.mark.parametrize("name", ["http", "child_process", "stream/promises", "util/types", "node:sea"])
def test_a_part_of_nodes_library_is_no_package_to_install(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused) as refused:
        script(tmp_path, Path(written(tmp_path, "http://h:80", source=f"require('{name}');")).read_text())
    assert "Prony's JavaScript lacks this part of Node;" in str(refused.value)
    assert "npm install" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("timers/promises", "add a think"),
        ("node:timers", "add a think"),
        ("axios", "cannot do in Prony; write its requests into the flow"),
        ("@aws-sdk/client-s3", "write its requests into the flow"),
        ("faker", r"\(npm install faker@5\.5\.3\)"),
        ("@faker-js/faker/locale/de", r"\(npm install @faker-js/faker\)"),
    ],
)
def test_a_refusal_says_what_helps(tmp_path: Path, name: str, instead: str) -> None:
    with pytest.raises(Refused, match=instead):
        script(tmp_path, Path(written(tmp_path, "http://h:80", source=f"require('{name}');")).read_text())


def test_a_folder_is_no_package_to_install(tmp_path: Path) -> None:
    (tmp_path / "index.js").write_text("exports.prefix = 'u-';")
    source = SOURCE.replace("require('./shared')", "require('.')")
    made = script(tmp_path, Path(written(tmp_path, "http://h:80", source=source)).read_text())
    assert made.trial.script is not None


def test_the_engine_has_what_is_said_to_be_there() -> None:
    """The lists of the translation and of the engine are the same."""
    source = (ROOT / "engine/js/src/packages.rs").read_text(encoding="utf-8")
    own = re.search(r"const OWN:[^=]*= \[(.*?)\n\];", source, re.DOTALL)
    nodes = re.search(r"const NODES:[^=]*= \[(.*?)\n\];", source, re.DOTALL)
    assert own is not None
    assert nodes is not None
    assert set(re.findall(r'\(\s*"([^"]+)"', own[1])) == THERE
    assert set(re.findall(r'"([^"]+)"', nodes[1])) == NODES
    assert not THERE & NODES


def test_what_is_installed_and_what_may_never_be_reached_is_taken(tmp_path: Path) -> None:
    (tmp_path / "node_modules/@faker-js/faker").mkdir(parents=True)
    source = SOURCE + (
        "const { faker } = require('@faker-js/faker');\nconst fs = require('node:fs');\n"
        "function f() {\n  return require('./late.json');\n}\n"
    )
    made = script(tmp_path, Path(written(tmp_path, "http://h:80", source=source)).read_text())
    assert made.trial.script is not None


def test_a_text_or_a_comment_that_looks_like_a_package_is_none(tmp_path: Path) -> None:
    source = (
        SOURCE + "/* require('x') */\nconst text = Buffer.from('abc').toString('hex') + 'import y from';\n"
    )
    assert script(tmp_path, Path(written(tmp_path, "http://h:80", source=source)).read_text()).trial.script


@pytest.mark.parametrize("name", ["functions.ts", "nowhere.js"])
def test_a_processor_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    text = FLOW.replace("./functions.js", f"./{name}").format(url="http://h:80")
    with pytest.raises(UsageError, match=r"s\.yml:3: "):
        script(tmp_path, text)


def test_functions_become_calls_that_share_what_they_name(tmp_path: Path) -> None:
    made = script(tmp_path, Path(written(tmp_path, "http://h:80")).read_text())
    assert made.trial.script is not None
    assert made.trial.script.file == str((tmp_path / "functions.js").resolve())
    around = json.loads(made.trial.script.args[0])
    assert (around["target"], around["origin"], around["env"]) == ("http://h:80", "http://h:80", {})
    (scenario,) = made.trial.workload.scenarios
    calls = [entry.call for entry in scenario.steps if isinstance(entry, Block) and entry.call is not None]
    assert [call.task["functions"] for call in calls[:2]] == [["begin"], ["sign"]]
    # A condition may look at any of them.
    names = {"name", "who", "list", "turn", "seen", "later", "n", "c", "target", "enough"}
    assert set(calls[0].give) == set(calls[0].take) == names
    set_before = {"who": '"me"', "n": "5", "target": '"http://h:80"'}
    assert scenario.variables == dict.fromkeys(names, "null") | set_before
    text = FLOW.replace(", ifTrue: enough", "").format(url="http://h:80")
    (scenario,) = script(tmp_path, text).trial.workload.scenarios
    # What the requests before which functions are called name, too.
    assert set(scenario.variables) == {"name", "who", "list", "turn", "seen", "later", "c"}
    first, second = made.trial.workload.scenarios[0].requests[:2]
    assert (first.path, first.header_lines, first.headers) == (
        "/${hook_1_path}", "${hook_1_headers}", {"Host": "h", "Connection": "keep-alive"},
    )  # fmt: skip
    assert first.body is None
    assert second.body is not None
    assert explained(made) == made.trial


def test_calibration_calls_nothing(tmp_path: Path) -> None:
    made = script(tmp_path, Path(written(tmp_path, "http://h:80")).read_text())
    quiet = reference._for_reference(made.trial.workload)
    assert quiet.all_steps
    assert "call" not in quiet.model_dump_json(exclude_none=True)
    assert all(step.header_lines is None for step in quiet.all_steps)


def test_functions_are_called_as_the_flow_says(serve: Serve, front: Front, tmp_path: Path) -> None:
    server, report = serve(), tmp_path / "r.json"
    argv = ["run", "-o", str(report), written(tmp_path, server.url)]
    assert run(argv, front.context(exit_like_original=True)) == 0, front.err.getvalue()
    assert server.ended()["requests"] == 2 * SENT_EACH
    found = counted(report)
    assert (found["counters"]["begun"], found["counters"]["closed"]) == (2, 4)
    assert (found["counters"]["vusers.completed"], found["counters"]["vusers.failed"]) == (2, 0)
    assert found["summaries"]["looked"]["count"] == 2
    lines = {line for line, _, _ in unordered(server)}
    assert "GET /a/p-me HTTP/1.1" in lines
    assert "GET /elsewhere?n=5 HTTP/1.1" in lines
    assert "GET /later/7 HTTP/1.1" in lines


def failing(source: str, serve: Serve, front: Front, tmp_path: Path) -> tuple[int, dict[str, Any], int]:
    flow = (
        "config: {{target: '{url}', processor: ./functions.js, phases: [{{duration: 1, arrivalCount: 2}}]}}\n"
        "scenarios: [{{flow: [{{get: {{url: /a}}}}, {{function: f}}, {{get: {{url: /b}}}}]}}]\n"
    )
    server, report = serve(), tmp_path / "r.json"
    argv = ["run", "-o", str(report), written(tmp_path, server.url, flow, source)]
    code = run(argv, front.context(exit_like_original=True))
    return code, counted(report)["counters"], server.ended()["requests"]


def test_errors_of_functions_are_counted_by_name(serve: Serve, front: Front, tmp_path: Path) -> None:
    source = "exports.f = (context, ee, done) => done(new Error('no luck'));"
    code, counters, sent = failing(source, serve, front, tmp_path)
    assert (code, sent) == (0, 2)
    assert (counters["errors.no luck"], counters["vusers.failed"]) == (2, 2)


def test_an_endless_loop_ends_the_run(
    serve: Serve, front: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The package gives that name to the function.
    translating = import_module("prony_frontends.artillery.translate")
    slow = translating.script_of
    monkeypatch.setattr(
        translating, "script_of",
        lambda *given: slow(*given).model_copy(update={"call_timeout_ms": 300.0}),
    )  # fmt: skip
    code, _, _ = failing("exports.f = () => { for (;;) {} };", serve, front, tmp_path)
    assert code == 1
    assert "f() was ended after 0.3 s" in front.err.getvalue()


@pytest.mark.needs("artillery")
def test_the_real_artillery_sends_and_counts_the_same(serve: Serve, front: Front, tmp_path: Path) -> None:
    ours, theirs = serve(), serve()
    mine, its = tmp_path / "mine.json", tmp_path / "its.json"
    argv = ["run", "-o", str(mine), written(tmp_path, ours.url)]
    assert run(argv, front.context(exit_like_original=True)) == 0
    done = subprocess.run(
        [program("artillery"), "run", "-o", str(its), written(tmp_path, theirs.url)],
        capture_output=True, text=True, timeout=240, check=False,
        env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert ours.ended()["requests"] == theirs.ended()["requests"] == 2 * SENT_EACH
    assert unordered(ours) == unordered(theirs)
    # By endpoint a request has the URL of the script, there that which the functions have made of it.
    theirs_alone = re.compile(r".*/elsewhere")
    for name, value in counted(its)["counters"].items():
        assert theirs_alone.match(name) or counted(mine)["counters"].get(name) == value, name
    missing = set(counted(its)["summaries"]) - set(counted(mine)["summaries"])
    assert all(map(theirs_alone.match, missing)), missing
