"""What config holds that changes no request, payloads of every form, and requests to several servers."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.load.contract import engine_plan
from prony_frontends.artillery import run
from tests.frontends.artillery.test_run import requests
from tests.frontends.artillery.test_translate import flow, script
from tests.frontends.codes import noted
from tests.frontends.conftest import Served, as_asked, quick_desk
from tests.programs import program

PHASE = "  phases: [{duration: 1, arrivalCount: 2}]\n"


def text(url: str, steps: str, config: str = "") -> str:
    flow = "".join(f"      {line}\n" for line in steps.splitlines())
    return f"config:\n  target: '{url}'\n{PHASE}{config}scenarios:\n  - flow:\n{flow}"


@pytest.mark.parametrize(
    ("config", "code", "named"),
    [
        ("  processor: ./f.js\n", "not_loaded", "config.processor"),
        ("  plugins: {publish-metrics: [], apdex: {}}\n", "plugin", "'apdex'"),
        ("  http: {maxRedirects: 3}\n", "http_option", "config.http.maxRedirects"),
        ("  http: {extendedMetrics: true}\n", "http_option", "prony results show"),
        ("  apdex: {threshold: 100}\n  owner: me\n", "unknown_key", "config.apdex, config.owner"),
        ("  plugins: {own-thing: {a: 1}}\n", "plugin", "'own-thing'"),
        ("  http: {retries: 3}\n", "unknown_key", "config.http.retries"),
        ("  defaults: {tags: [a]}\n", "unknown_key", "the default 'tags'"),
        ("  engines: {playwright: {}}\n", "unknown_key", "config.engines.playwright"),
        ("  payload: {path: p.csv}\n", "no_effect", "fields"),
        ("  payload: {path: p.csv, fields: [a], loadAll: true}\n", "no_effect", "loadAll"),
        ("  plugins: {ensure: {errorRate: 1}}\n", "unknown_key", "'errorRate'"),
        ("  plugins: {ensure: {}}\n  ensure: [{p95: 1}]\n", "no_checks", "ensure"),
        ("version: 2\n", "unknown_key", "'version'"),
    ],
)
def test_what_changes_no_request_is_noted(tmp_path: Path, config: str, code: str, named: str) -> None:
    made = script(tmp_path, text("http://h:80", "- get: {url: /}", config))
    assert noted(made.notes, code, named), made.notes
    plain = script(tmp_path, text("http://h:80", "- get: {url: /}"))
    assert made.trial == plain.trial


@pytest.mark.parametrize(
    ("keys", "content", "columns", "mark"),
    [
        ("fields: [a, b]", "1,x\n2,y\n", ("column1", "column2"), ","),
        ("fields: [a], skipHeader: false", "n,m\no,2\n", ("column1", "column2"), ","),
        ("fields: [a, b], delimiter: ';'", "1;x\n", ("column1", "column2"), ";"),
        ("fields: [a], skipHeader: true, delimiter: '|'", "n|m\n1|2\n", (), "|"),
    ],
)
def test_a_payload_with_and_without_a_line_of_names(
    tmp_path: Path, keys: str, content: str, columns: tuple[str, ...], mark: str
) -> None:
    (tmp_path / "p.csv").write_text(content)
    made = script(
        tmp_path, text("http://h:80", "- get: {url: '/{{ a }}'}", f"  payload: {{path: p.csv, {keys}}}\n")
    )
    (feeder,) = made.trial.workload.feeders.values()
    assert (feeder.columns, feeder.delimiter) == (columns, mark)
    (step,) = made.trial.workload.scenarios[0].requests
    assert step.path == "/${payload1." + ("column1" if columns else "n") + "}"


def test_a_pool_shares_connections(tmp_path: Path) -> None:
    made = script(tmp_path, text("http://h:80", "- get: {url: /}", "  http: {pool: 10}\n"))
    assert made.trial.connections.shared
    assert noted(made.notes, "http_option", "config.http.pool")
    assert engine_plan(as_asked(made))["connection"]["reuse"] == "keep_alive"
    plain = script(tmp_path, text("http://h:80", "- get: {url: /}"))
    assert engine_plan(as_asked(plain))["connection"]["reuse"] == "per_session"


@pytest.mark.parametrize(
    ("steps", "code", "named"),
    [
        ("- get: {url: /, comment: none}", "unknown_key", "'comment'"),
        ("- get: {url: /, expect: [{statusCodes: 200}]}", "unknown_key", "'statusCodes'"),
        ("- parallel: [{get: {url: /}}]", "sequential", "parallel"),
        ("- parallel: [{log: x}, {loop: [{get: {url: /}}], count: 1}]", "sequential", "loops"),
        (
            "- get: {url: /, match: {json: $.a, value: 1, ifExists: 1, strict: false}}",
            "unknown_key",
            "'ifExists'",
        ),
    ],
)
def test_what_artillery_passes_over_is_noted(tmp_path: Path, steps: str, code: str, named: str) -> None:
    plugin = "  plugins: {expect: {}}\n"
    made = script(tmp_path, text("http://h:80", steps, plugin))
    assert noted(made.notes, code, named), made.notes
    plain = script(tmp_path, text("http://h:80", "- get: {url: /}", plugin))
    assert made.trial == plain.trial


def test_a_slash_at_the_end_of_the_target_stays(tmp_path: Path) -> None:
    for target, path in (("http://h:80", "/a"), ("http://h:80/", "//a"), ("http://h:80/b/", "/b//a")):
        (step,) = script(tmp_path, text(target, "- get: {url: /a}")).trial.workload.scenarios[0].requests
        assert step.path == path


def test_requests_to_another_server(tmp_path: Path) -> None:
    steps = flow(
        tmp_path, "- get: {url: /a}\n- get: {url: 'http://other:81/b'}\n- get: {url: 'http://h:8080/c'}"
    )
    assert [(step.server, step.path) for step in steps] == [
        (None, "/base/a"), ("http://other:81", "/b"), (None, "/c"),
    ]  # fmt: skip
    made = script(tmp_path, text("http://h:80", "- get: {url: 'http://other:81/b'}"))
    assert engine_plan(as_asked(made))["other_targets"] == [{"url": "http://other:81"}]


FORM = """\
- post:
    url: /form
    formData:
      plain: "a {{ n }}"
      number: 5
      typed: {value: '{"a": 1}', contentType: application/json}
      page: {fromFile: page.html}
      other: {fromFile: page.html, contentType: text/x-own}
"""


@pytest.mark.needs("artillery")
def test_forms_of_parts_are_artillerys_but_for_the_boundary(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text("<p>\n")
    seen = []
    for who in ("theirs", "ours"):
        server = serve()
        file = tmp_path / f"{who}.yml"
        file.write_text(text(server.url, FORM, "  variables: {n: 7}\n"))
        if who == "theirs":
            subprocess.run(
                [program("artillery"), "run", str(file)], capture_output=True, timeout=240, check=True,
                env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
            )  # fmt: skip
        else:
            assert run(["run", str(file)], quick_desk()[0]) == 0
        server.ended()
        raw = re.sub(
            rb"-{26}[0-9a-f]{24}", b"BOUNDARY", server.recorded().replace(server.address.encode(), b"")
        )
        # Names of headers in any case, and the headers in any order.
        seen.append([sorted(one.lower().split(b"\r\n")) for one in raw.split(b"POST ")])
    assert seen[0] == seen[1]
    assert b'content-disposition: form-data; name="page"; filename="page.html"' in seen[1][1]


@pytest.mark.needs("artillery")
def test_artillery_itself_sends_the_same(serve: Callable[..., Served], tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("first;1\nfirst;1\n")
    config = (
        "  payload: {path: p.csv, fields: [who, n], delimiter: ';'}\n  http: {pool: 5}\n  owner: me\n"
        "  plugins: {publish-metrics: []}\n"
    )
    sent = []
    for who in ("theirs", "ours"):
        one, other = serve(), serve()
        steps = f"- get: {{url: '/{{{{ who }}}}/{{{{ n }}}}'}}\n- get: {{url: '{other.url}/there'}}\n"
        file = tmp_path / f"{who}.yml"
        file.write_text(text(f"{one.url}/", steps, config))
        if who == "theirs":
            subprocess.run(
                [program("artillery"), "run", str(file)], capture_output=True, timeout=240, check=True,
                env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
            )  # fmt: skip
        else:
            assert run(["run", str(file)], quick_desk()[0]) == 0
        for server in (one, other):
            server.ended()
            sent.append([
                (line, body, {name: text for name, text in headers.items() if name != "host"})
                for line, headers, body in requests(server.recorded())
            ])  # fmt: skip
    assert sent[:2] == sent[2:]
    assert sent[0][0][0] == "GET //first/1 HTTP/1.1"
