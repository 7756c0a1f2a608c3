"""What is done with responses: redirects, captures and expectations, on a server that answers by the path."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from prony.errors import UsageError
from prony.plan.step import Step
from prony_frontends.artillery import run
from prony_frontends.artillery.paths import place, several
from prony_frontends.artillery.script import of
from prony_frontends.artillery.translate import translate
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import quick_desk
from tests.programs import program

USERS = 8
ITEMS = {"items": [{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}, {"id": 3, "kind": "a"}], "gone": None}
LEADS = {"/old": (301, "/mid"), "/mid": (302, "/items"), "/form": (303, "/items"), "/round": (302, "/round")}


class Site(BaseHTTPRequestHandler):
    """Pages, some of which lead elsewhere; keeps what was asked for."""

    protocol_version = "HTTP/1.1"
    asked: list[str]

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.asked.append(f"{self.command} {self.path}")
        status, to = LEADS.get(self.path, (200, None))
        if self.path == "/away":
            status, to = 302, "http://elsewhere.example/"
        body = b"" if to else json.dumps(ITEMS).encode()
        if self.path == "/cut":
            self.close_connection = True
            return
        if self.path == "/broken":
            status, body = 500, b'{"id": 7}'
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if to is not None:
            self.send_header("Location", to)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


class Quick:
    """A site, and how a flow is offered to it: USERS users, each once."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        self.folder = folder
        handler = type("Kept", (Site,), {"asked": self.asked})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True

    def script(self, flow: str, config: str = "", options: str = "{}") -> str:
        file = self.folder / "s.yml"
        steps = "".join(f"      {line}\n" for line in flow.splitlines())
        file.write_text(
            f"config:\n  target: http://127.0.0.1:{self.server.server_address[1]}\n"
            f"  phases: [{{duration: 1, arrivalCount: {USERS}}}]\n"
            f"  plugins: {{expect: {options}, metrics-by-endpoint: {{}}}}\n{config}"
            f"scenarios:\n  - flow:\n{steps}"
        )
        return str(file)

    def offered(
        self, flow: str, config: str = "", options: str = "{}"
    ) -> tuple[dict[str, int], Counter[str], int]:
        """The counters of the report, what the site was asked for, and Artillery's exit code."""
        self.asked.clear()
        report = self.folder / "report.json"
        context, _, _ = quick_desk()
        script = self.script(flow, config, options)
        code = run(["run", "-q", "-o", str(report), script], context)
        return json.loads(report.read_text())["aggregate"]["counters"], Counter(self.asked), code

    def steps(self, flow: str) -> tuple[Step, ...]:
        found = translate(["run", self.script(flow)]).trial.workload.scenarios[0].requests
        assert found
        return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Quick]:
    quick = Quick(tmp_path)
    thread = Thread(target=quick.server.serve_forever)
    thread.start()
    yield quick
    quick.server.shutdown()
    thread.join()
    quick.server.server_close()


def test_redirects_are_followed_and_every_hop_is_a_request(site: Quick) -> None:
    found, asked, code = site.offered("""\
- get:
    url: /old
    capture: {json: "$.items[1].kind", as: kind}
    expect: [{statusCode: 200}, {hasProperty: items}]
- post: {url: /form, json: {a: 1}, expect: {notStatusCode: 404}}
- get: {url: "/{{ kind }}"}""")
    wanted = {"GET /old": 1, "GET /mid": 1, "GET /items": 2, "POST /form": 1, "GET /b": 1}
    assert asked == {line: count * USERS for line, count in wanted.items()}
    assert code == 0
    ends = {key: found.get(key, 0) / USERS for key in (
        "http.requests", "http.responses", "http.codes.200", "http.codes.301", "http.codes.302",
        "http.codes.303", "vusers.completed", "plugins.expect.ok", "plugins.expect.ok.statusCode",
        "plugins.expect.ok.hasProperty", "plugins.metrics-by-endpoint./old.codes.200",
        "plugins.metrics-by-endpoint./form.codes.200",
    )}  # fmt: skip
    assert list(ends.values()) == [6, 6, 3, 1, 1, 1, 1, 3, 1, 1, 1, 1]
    assert not [key for key in found if "expect.failed" in key or key.startswith("errors.")]
    assert not [key for key in found if "by-endpoint" in key and ".codes.3" in key]  # only last responses


def test_what_is_not_followed(site: Quick) -> None:
    found, asked, _ = site.offered("""\
- get: {url: /old, followRedirect: false, expect: {statusCode: 301}}
- get: {url: /old, maxRedirects: 1, name: short, expect: {statusCode: 200}}
- get: {url: /never}""")
    assert asked == {"GET /old": 2 * USERS, "GET /mid": USERS}
    assert found["errors.redirect_not_followed"] == found["vusers.failed"] == USERS
    # Only what was answered in the end is looked at.
    assert found["plugins.expect.ok"] == found["plugins.expect.ok.statusCode"] == USERS
    assert "plugins.expect.failed" not in found
    for line, hops in (
        ("- get: {url: /round, expect: {hasProperty: items}}", 11),
        ("- get: {url: /away}", 1),
    ):
        found, asked, _ = site.offered(f"{line}\n- get: {{url: /never}}")
        assert (list(asked.values()), found["errors.redirect_not_followed"]) == ([hops * USERS], USERS)
    steps = site.steps("- get: {url: /a}\n- get: {url: /b, followRedirect: false}")
    assert [step.follow_redirects for step in steps] == [10, 0]
    with pytest.raises(UsageError, match="expected true or false"):
        site.steps("- get: {url: /a, followRedirect: sometimes}")
    with pytest.raises(UsageError, match="a number from 0 to 100"):
        site.steps("- get: {url: /a, maxRedirects: 2.5}")


def test_one_of_several_is_captured_at_random(site: Quick) -> None:
    found, asked, _ = site.offered("""\
- loop:
    - get: {url: /items, capture: [{json: "$.items[*].id", as: id}, {json: "$..kind", as: kind}]}
    - get: {url: "/of/{{ id }}"}
    - get:
        url: /items
        capture: {json: "$.items[?(@.kind == 'a' && @.id > 1)].id", as: third}
    - get: {url: "/third/{{ third }}"}
  count: 10""")
    drawn = {line: count for line, count in asked.items() if line.startswith("GET /of/")}
    # A value that is one of three is missed by 80 draws in one of 10^14 runs.
    assert set(drawn) == {"GET /of/1", "GET /of/2", "GET /of/3"}
    assert sum(drawn.values()) == asked["GET /third/3"] == 10 * USERS
    assert found["vusers.completed"] == USERS


def test_captures_that_may_fail_and_those_beside_a_missed_expectation(site: Quick) -> None:
    flow = """\
- get: {url: /items, capture: {json: "$.items[0].id", as: id}}
- get: {url: /items, capture: {json: "$.none[*]", as: id%s}}
- get: {url: "/was/{{ id }}"}
- get: {url: /broken, capture: {json: $.id, as: number}, expect: {statusCode: 200}}
- get: {url: "/got/{{ number }}"}"""
    found, asked, code = site.offered(flow % ", strict: false")
    assert (asked["GET /was/"], asked["GET /got/7"]) == (USERS, USERS)  # emptied, as there; taken from a 500
    assert (found["vusers.completed"], found["plugins.expect.failed.statusCode"]) == (USERS, USERS)
    assert code == 21
    _, asked, _ = site.offered(flow % "", "  defaults: {strictCapture: false}\n")
    assert asked["GET /was/"] == USERS
    found, asked, _ = site.offered(flow % "", "  defaults: {strictCapture: true}\n")
    assert found["errors.Failed capture or match"] == USERS
    assert (asked["GET /was/"], found["vusers.failed"]) == (0, USERS)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("{}", ["/items?a=1", "/items?a=1 (named)"]),
        ("{useOnlyRequestNames: true, metricsNamespace: mine}", ["/items?a=1", "named"]),
        ("{stripQueryString: true}", ["/items", "/items (named)"]),
        ("{ignoreUnnamedRequests: true}", ["/items?a=1 (named)"]),
    ],
)
def test_metrics_by_endpoint_are_called_as_there(site: Quick, options: str, found: list[str]) -> None:
    flow = "- get: {url: '/items?a=1'}\n- get: {url: '/items?a=1', name: named}"
    script = Path(site.script(flow))
    script.write_text(
        script.read_text().replace("metrics-by-endpoint: {}", f"metrics-by-endpoint: {options}")
    )
    report = site.folder / "report.json"
    context, out, _ = quick_desk()
    run(["run", "-o", str(report), str(script)], context)
    counters = json.loads(report.read_text())["aggregate"]["counters"]
    prefix = "mine." if "mine" in options else "plugins.metrics-by-endpoint."
    ours = {name: count for name, count in counters.items() if name.startswith(prefix)}
    assert ours == {f"{prefix}{name}.codes.200": USERS for name in found}
    assert f"{prefix}response_time.{found[0]}:" in out.getvalue()


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("- get: {url: /cut}", "ECONNRESET"),
        ("- get: {url: /items, match: {json: '$.items[0].id', value: '1'}}", "Failed capture or match"),
        ("- get: {url: /items, capture: {json: $.none, as: none}}", "Failed capture or match"),
    ],
)
def test_a_user_whose_request_fails_leaves(site: Quick, line: str, error: str) -> None:
    found, asked, code = site.offered(f"- get: {{url: /items}}\n{line}\n- get: {{url: /never}}")
    assert (asked["GET /never"], found[f"errors.{error}"], found["vusers.failed"]) == (0, USERS, USERS)
    assert ("vusers.completed" in found, code) == (False, 0)


def test_a_match_that_may_miss_changes_nothing(site: Quick) -> None:
    (lax, strict) = site.steps("""\
- get: {url: /, match: {json: $.a, value: 1, strict: false}, capture: {json: $.b, as: b}}
- get: {url: /, match: {json: $.a, value: 1}, capture: {json: $.b, as: b}}""")
    assert lax.expect is not None
    assert strict.expect is not None
    assert (lax.expect.json_values, lax.capture["b"].always) == ({}, True)
    assert (strict.expect.json_values, strict.capture["b"].always) == ({"/a": 1}, False)


@pytest.mark.needs("artillery")
def test_the_real_artillery_asks_for_the_same_and_counts_the_same(site: Quick) -> None:
    flow = """\
- get:
    url: /old
    capture: {json: "$.items[1].kind", as: kind}
    expect:
      - {statusCode: 200}
      - {hasProperty: items}
      - {equals: ["{{ kind }}", b]}
      - {jmespath: "items[0].id == `1`", description: "the first"}
- post: {url: /form, json: {a: 1}, expect: {notStatusCode: 404}}
- get: {url: "/{{ kind }}"}
- get: {url: /mid, followRedirect: false, expect: {statusCode: 302}}
- get:
    url: /items
    capture:
      - {json: "$.items[?(@.kind == 'a' && @.id > 1)].id", as: third}
      - {json: "$..kind", as: any}
    expect: [{notHasProperty: "items[0].name"}, {notHasProperty: "items[0].id"}]
- get: {url: "/third/{{ third }}"}
- get: {url: /none, capture: {regexp: nothing, as: third, strict: false}}
- get: {url: "/was/{{ third }}"}
- get: {url: /broken, capture: {json: $.id, as: number}, expect: {statusCode: 200}}
- get: {url: "/got/{{ number }}"}
- get: {url: /again, capture: {json: "$.items[0].id", as: one}, expect: {equals: ["{{ one }}", 2]}}
- get: {url: /round}"""
    found, asked, code = site.offered(flow)
    site.asked.clear()
    report = site.folder / "its.json"
    done = subprocess.run(
        [program("artillery"), "run", "-q", "-o", str(report), site.script(flow)],
        capture_output=True, text=True, timeout=240, check=False,
        env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
    )  # fmt: skip
    assert done.returncode == code == 21, done.stdout + done.stderr
    assert Counter(site.asked) == asked
    counters = json.loads(report.read_text())["aggregate"]["counters"]
    assert counters.pop("errors.ERR_TOO_MANY_REDIRECTS") == found["errors.redirect_not_followed"] == USERS
    for name in [name for name in counters if name.endswith(".errors.ERR_TOO_MANY_REDIRECTS")]:
        counters.pop(name)  # errors are not counted by endpoint
    assert {name: found.get(name) for name in counters} == counters


@pytest.mark.parametrize(
    ("holds", "misses", "label"),
    [
        ("{notHasProperty: 'items[0].name'}", "{notHasProperty: 'items[0].id'}", "notHasProperty"),
        ("{jmespath: \"items[0].kind == 'a'\"}", "{jmespath: 'items[1].id == `3`'}", "jmespath"),
        ("""{matchesRegexp: '"kind":\\s"[ab]"'}""", "{matchesRegexp: '^nothing$'}", "matchesRegexp"),
    ],
)
def test_expectations_of_the_body(site: Quick, holds: str, misses: str, label: str) -> None:
    found, _, code = site.offered(f"- get: {{url: /items, expect: [{holds}]}}")
    assert (found[f"plugins.expect.ok.{label}"], code) == (USERS, 0)
    found, _, code = site.offered(f"- get: {{url: /items, expect: [{misses}]}}")
    assert (found[f"plugins.expect.failed.{label}"], code) == (USERS, 21)
    assert found["vusers.completed"] == USERS
    (step,) = site.steps(f"- get: {{url: /items, expect: [{holds}]}}")
    assert "accept-encoding" not in step.headers  # the body is looked at


def test_a_captured_value_equals_what_is_expected(site: Quick) -> None:
    capture = "capture: {json: '$.items[1].kind', as: kind}"
    for texts, holds in (("['{{ kind }}', b]", True), ("[a, '{{ kind }}']", False)):
        found, _, code = site.offered(f"- get: {{url: /items, {capture}, expect: {{equals: {texts}}}}}")
        state = "ok" if holds else "failed"
        assert (found[f"plugins.expect.{state}.equals"], code) == (USERS, 0 if holds else 21)
    site.offered("- get: {url: /items, expect: [{equals: [a, a]}]}")
    for texts in ("[a, b]", "['{{ kind }}']", "['{{ kind }}', a, b]"):
        with refuses("unsupported", "equals"):
            site.steps(f"- get: {{url: /items, {capture}, expect: [{{equals: {texts}}}]}}")


def test_200_is_expected_of_requests_that_expect_nothing(site: Quick) -> None:
    flow = """\
- get: {url: /broken}
- get: {url: /broken, name: known, expect: {statusCode: 500}}
- get: {url: /items, expect: []}"""
    found, asked, code = site.offered(flow, options="{expectDefault200: true, reportFailuresAsErrors: true}")
    assert (found["plugins.expect.failed"], found["plugins.expect.ok"]) == (USERS, 2 * USERS)
    assert (asked["GET /items"], code) == (USERS, 21)
    notes = translate(["run", str(site.folder / "s.yml")]).notes
    assert noted(notes, "failed_expectation")


@pytest.mark.parametrize(
    ("path", "rfc"),
    [
        ("$.a[*].b", '$["a"][*]["b"]'),
        ("a.*.b-c", '$["a"][*]["b-c"]'),
        ("$..b", '$..["b"]'),
        ("$..*", "$..*"),
        ("$.a[0,2]['x y']", '$["a"][0,2]["x y"]'),
        ("$.a[-1:].b", '$["a"][-1:]["b"]'),
        ("$.a[0:4:2][1]", '$["a"][0:4:2][1]'),
        ("$.a[?(@.b === 'it\"s' || @.c<-1.5)].d", '$["a"][?@["b"] == "it\\"s" || @["c"] < -1.5]["d"]'),
    ],
)
def test_paths_to_several_places(path: str, rfc: str) -> None:
    node = of(path, "s.yml", 1)
    assert (place(node), several(node)) == (None, rfc)


@pytest.mark.parametrize(
    "path", ["$.a[?(@.b)]", "$.a[?(@.b.c == 1)]", "$.a[(@.length-1)]", "$.a^", "$.a[-1]"]
)
def test_paths_that_mean_something_else(path: str) -> None:
    with refuses("unsupported", "JSONPath"):
        several(of(path, "s.yml", 1))
