"""prony artillery: what Artillery 2.0.21 sends in its own way is sent so, or refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.script import Script
from prony.plan.step import Block
from prony_frontends.artillery.metrics import NO_OBJECT, _as_node
from prony_frontends.artillery.translate import translate
from prony_frontends.base import Translated
from tests.frontends.codes import noted, refuses

CONFIG = "config: {{target: 'http://127.0.0.1:9', phases: [{{duration: 1, arrivalCount: 1}}]{more}}}\n"


def made(folder: Path, flow: str, more: str = "", functions: str = "") -> Translated:
    (folder / "f.js").write_text(functions)
    (folder / "s.yml").write_text(f"{CONFIG.format(more=more)}scenarios: [{{flow: [{flow}]}}]\n")
    return translate(["run", str(folder / "s.yml")])


@pytest.mark.parametrize(
    ("request_", "refused"),
    [
        ("post: {body: xyz, headers: {Content-Length: '3'}", False),
        ("post: {body: 'x${ü', headers: {Content-Length: 5}", False),
        ("post: {json: {a: 1}, headers: {content-length: '7'}", False),
        ("post: {headers: {Content-Length: '0'}", False),
        ("post: {body: xyz, headers: {Content-Length: '2'}", True),
        ("post: {json: {a: 1}, headers: {Content-Length: '100'}", True),
        ("post: {body: 'x{{ $uuid }}', headers: {Content-Length: '37'}", True),
        ("post: {formData: {a: x}, headers: {Content-Length: '9'}", True),
        ("get: {headers: {Content-Length: '0'}", True),
    ],
)
def test_a_content_length_is_the_bodys(tmp_path: Path, request_: str, refused: bool) -> None:
    """Artillery sends the header as it is: part of the body, or a request that never ends."""
    flow = f"{{{request_}, url: /a}}}}"
    if refused:
        with refuses("unsupported", "Content-Length"):
            made(tmp_path, flow)
        return
    (step,) = made(tmp_path, flow).trial.workload.all_steps
    assert "content-length" not in step.headers


@pytest.mark.parametrize(
    ("flow", "more", "says"),
    [
        ("{post: {url: /, json: {a: .inf}}}", "", "no finite number"),
        ("{get: {url: '/{{ n }}'}}", ", variables: {n: .nan}", "no finite number"),
        ("{get: {url: '/{{ d }}'}}", ", variables: {d: 2020-01-01}", "an unquoted date"),
        ("{get: {url: /, qs: {d: 2020-01-01}}}", "", "an unquoted date"),
        ("{post: {url: /, form: {d: 2020-01-01}}}", "", "an unquoted date"),
        ("{post: {url: /, json: {d: 2020-01-01, e: '{{ d }}'}}}", ", variables: {d: 2020-01-01}", None),
    ],
)
def test_numbers_and_dates_that_javascript_writes_by_their_place(
    tmp_path: Path, flow: str, more: str, says: str | None
) -> None:
    if says is None:
        assert made(tmp_path, flow, more).trial.workload.all_steps
        return
    with pytest.raises(UsageError, match=says):
        made(tmp_path, flow, more)


def test_a_header_of_a_variable_that_is_null_fails_the_user(tmp_path: Path) -> None:
    found = made(tmp_path, "{get: {url: /, headers: {x: '{{ n }}'}}}", ", variables: {n: null}")
    entry = found.trial.workload.walks[0].steps[0]
    assert isinstance(entry, Block)
    assert entry.call is not None
    assert entry.call.task["error"] == "ERR_GOT_REQUEST_ERROR"


WITH = ", processor: f.js, variables: {v: [q, r]}"


def test_a_url_that_a_function_writes_has_the_users_values(tmp_path: Path) -> None:
    """Its templates are filled in afterwards: Artillery sends /o/q, Prony once sent the whole list."""
    functions = "module.exports = {f(r, c, e, next) { r.url = '/o/{{ v }}'; next(); }};"
    trial = made(tmp_path, "{get: {url: /a, beforeRequest: f}}", WITH, functions).trial
    (call, _) = trial.workload.walks[0].steps
    assert isinstance(call, Block)
    assert call.call is not None
    assert "v" in call.call.give
    assert isinstance(trial.script, Script)


@pytest.mark.parametrize("name", ["followRedirect", "maxRedirects"])
def test_redirects_are_not_for_functions_to_decide(tmp_path: Path, name: str) -> None:
    functions = f"module.exports = {{f(r, c, e, next) {{ r.{name} = 0; next(); }}}};"
    with refuses("unsupported", name):
        made(tmp_path, "{get: {url: /a, beforeRequest: f}}", WITH, functions)
    assert made(tmp_path, "{get: {url: /a, beforeRequest: f}}", WITH, f"// {name}\n").trial


@pytest.mark.parametrize(
    ("ours", "nodes"),
    [
        ("cannot set property 'x' of undefined", "Cannot set properties of undefined (setting 'x')"),
        ("cannot read property 'a b' of null", "Cannot read properties of null (reading 'a b')"),
        ("boom", "boom"),
    ],
)
def test_an_error_of_a_function_has_nodes_name(ours: str, nodes: str) -> None:
    assert NO_OBJECT.sub(_as_node, f"errors.{ours}") == f"errors.{nodes}"


@pytest.mark.parametrize("capture", ["json: $.a", "selector: a, attr: href", "regexp: a"])
def test_a_capture_that_may_miss_is_noted_where_artillery_sends_undefined(
    tmp_path: Path, capture: str
) -> None:
    """Of regexp and header Artillery sends an empty text, too."""
    flow = (
        f"{{get: {{url: /, capture: {{{capture}, as: v, strict: false}}}}}}, {{get: {{url: '/{{{{ v }}}}'}}}}"
    )
    assert noted(made(tmp_path, flow).notes, "no_match", "v") != capture.startswith("regexp")
