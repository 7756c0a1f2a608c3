"""What goes over the wire, byte for byte as recorded from Artillery 2.0.21 with Node 20."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prony_frontends.artillery import run
from prony_frontends.artillery.translate import translate
from tests.frontends.artillery.test_config import text
from tests.frontends.conftest import offered, quick_desk
from tests.frontends.recorder import Recorder

VALUES = {
    "q": 'a"b<c>d', "path": "x/../y", "hash": "a#b?c=d&e", "pct": "100%", "sp": "a b", "bs": "a\\b",
    "uml": "Müller", "euro": "5 €", "n": 12.5, "flag": True, "name": "foo",
}  # fmt: skip
COOKIES = {"cookie": "sid=1; Path=/", "two": "deep=3; Path=/c", "del": "sid=; Path=/; Max-Age=0"}


def answers(request: bytes) -> bytes:
    parts = request.split(b" ")[1].decode().split("/")
    lines = "".join(f"Set-Cookie: {line}\r\n" for name, line in COOKIES.items() if name in parts)
    kind = "Content-Type: application/json\r\n"
    return f"{kind}{lines}\r\n{json.dumps(VALUES, ensure_ascii=False)}".encode()


def sent(folder: Path, steps: str, config: str = "", processor: str = "") -> Recorder:
    """The server after one user."""
    if processor:
        (folder / "p.js").write_text(processor)
        config += "  processor: ./p.js\n"
    with Recorder(answers) as server:
        body = text(server.url, steps, config).replace("arrivalCount: 2", "arrivalCount: 1")
        (folder / "s.yml").write_text(body, encoding="utf-8")
        offered(translate(["run", str(folder / "s.yml")]))
    return server


def written(folder: Path, steps: str) -> str:
    (folder / "s.yml").write_text(text("http://h", steps), encoding="utf-8")
    return str(folder / "s.yml")


def counters(folder: Path, steps: str, config: str = "") -> tuple[dict[str, int], list[str]]:
    """The report's counters, and what the server was asked for."""
    with Recorder(answers) as server:
        body = text(server.url, steps, config).replace("arrivalCount: 2", "arrivalCount: 1")
        (folder / "s.yml").write_text(body, encoding="utf-8")
        run(["run", "-q", "-o", str(folder / "r.json"), str(folder / "s.yml")], quick_desk()[0])
    found: dict[str, int] = json.loads((folder / "r.json").read_text())["aggregate"]["counters"]
    return found, server.targets


CAPTURES = "- get: {url: /x, capture: [" + ", ".join(f"{{json: $.{n}, as: {n}}}" for n in VALUES) + "]}\n"


def test_a_whole_head(tmp_path: Path) -> None:
    server = sent(tmp_path, "- get: {url: /a, headers: {X-B: '1', user-agent: me}}")
    assert server.requests == [
        b"GET /a HTTP/1.1\r\nuser-agent: me\r\nx-b: 1\r\naccept-encoding: gzip, deflate, br\r\n"
        + f"Host: 127.0.0.1:{server.port}\r\nConnection: keep-alive\r\n\r\n".encode()
    ]


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("http://localhost", "localhost"),
        ("http://localhost:80", "localhost"),
        ("https://localhost:443/x", "localhost"),
        ("https://localhost:80", "localhost:80"),
        ("http://[::1]", "[::1]"),
        ("http://LOCALHOST:8080", "localhost:8080"),
    ],
)
def test_the_host_is_named_without_the_default_port(tmp_path: Path, target: str, host: str) -> None:
    (tmp_path / "s.yml").write_text(text(target, "- get: {url: /}\n- get: {url: 'http://other:80/'}"))
    own, other = translate(["run", str(tmp_path / "s.yml")]).trial.workload.scenarios[0].requests
    assert (own.headers["Host"], other.headers["Host"]) == (host, "other")


GOT = "got (https://github.com/sindresorhus/got)"


@pytest.mark.parametrize(
    ("config", "agents"),
    [
        ("", ["Artillery (https://artillery.io)", "mine"]),
        ("  defaults: {headers: {content-type: a/b}}\n", [GOT, "mine"]),
        ("  http: {defaults: {headers: {X-A: '1'}}}\n", [GOT, "mine"]),
        ("  defaults: {headers: {}}\n", [GOT, "mine"]),
        ("  defaults: {headers: {User-Agent: theirs}}\n", ["theirs", "mine"]),
        ("  defaults: {headers: {User-Agent: '{{ nothing }}'}}\n", [None, "mine"]),
    ],
)
def test_the_user_agent(tmp_path: Path, config: str, agents: list[str | None]) -> None:
    server = sent(tmp_path, "- get: {url: /a}\n- get: {url: /b, headers: {User-Agent: mine}}", config)
    assert server.headers("user-agent") == agents


def test_default_headers_are_filled_in_when_the_script_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRONY_TEST_WORD", "a word")
    config = (
        "  variables: {v: var}\n  http: {defaults: {headers: {x-v: '{{ v }}', x-m: 'Bearer {{ name }}', "
        "x-e: '{{ $env.PRONY_TEST_WORD }}'}, cookie: {c: '{{ v }}', d: 'x{{ $env.PRONY_TEST_WORD }}'}}}\n"
    )
    server = sent(tmp_path, CAPTURES + "- get: {url: /a}", config)
    found = [server.headers(name)[1] for name in ("x-v", "x-m", "x-e", "cookie")]
    assert found == [None, "Bearer undefined", "a word", "c=undefined; d=xa word"]


def test_forms_and_queries_of_structures(tmp_path: Path) -> None:
    values = "{a: [1, 2], b: null, c: {d: 1}}"
    steps = f"- post: {{url: /, form: {values}}}\n- get: {{url: /, qs: {values}}}"
    form, query = sent(tmp_path, steps).requests
    assert form.endswith(b"\r\n\r\na=1%2C2&b=null&c=%5Bobject+Object%5D")
    assert query.startswith(b"GET /?a=1&a=2&b=&c= HTTP/1.1\r\n")


def test_a_post_stays_one_after_a_redirect_but_303(tmp_path: Path) -> None:
    steps = "- post: {url: /}\n- put: {url: /}\n- post: {url: /, followRedirect: false}"
    found = translate(["run", written(tmp_path, steps)]).trial.workload.scenarios[0].requests
    assert [step.redirects_keep_method for step in found] == [True, False, False]


def test_an_authorization_header_replaces_auth(tmp_path: Path) -> None:
    server = sent(tmp_path, "- get: {url: /, auth: {user: u, pass: p}, headers: {Authorization: Bearer x}}")
    assert server.headers("authorization") == ["Bearer x"]


def test_groups_have_names(tmp_path: Path) -> None:
    step = "- get: {url: /x, capture: {regexp: '\"(na)(?:m)(?<rest>e)[(]?', group: rest, as: v}}"
    (request,) = translate(["run", written(tmp_path, step)]).trial.workload.scenarios[0].requests
    assert request.capture["v"].group == 2


def test_captured_values_in_a_url_are_encoded_as_by_node(tmp_path: Path) -> None:
    names = ("q", "path", "hash", "sp", "bs", "uml", "euro", "n", "flag")
    steps = "".join(f"- get: {{url: '/y/{{{{ {name} }}}}?z={{{{ {name} }}}}&w=1'}}\n" for name in names)
    assert sent(tmp_path, CAPTURES + steps).targets[1:] == [
        "/y/a%22b%3Cc%3Ed?z=a%22b%3Cc%3Ed&w=1", "/y/y?z=x/../y&w=1", "/y/a", "/y/a%20b?z=a%20b&w=1",
        "/y/a/b?z=a\\b&w=1", "/y/M%C3%BCller?z=M%C3%BCller&w=1", "/y/5%20%E2%82%AC?z=5%20%E2%82%AC&w=1",
        "/y/12.5?z=12.5&w=1", "/y/true?z=true&w=1",
    ]  # fmt: skip


def test_urls_of_a_script_are_encoded_as_by_node(tmp_path: Path) -> None:
    urls = (
        "/a b",
        '/a"b',
        "/a<b>c",
        "/a`b",
        "/a^b|c",
        "/a/../b",
        "/a/%2e%2e/b",
        "/a\\b",
        "/?a'`^|{\\",
        "/a#b",
        "/a?",
    )
    steps = "".join(f"- get: {{url: {json.dumps(url)}}}\n" for url in urls)
    assert sent(tmp_path, steps).targets == [
        "/a%20b", "/a%22b", "/a%3Cb%3Ec", "/a%60b", "/a^b|c", "/b", "/b", "/a/b", "/?a%27`^|{\\", "/a", "/a",
    ]  # fmt: skip


def test_a_percent_sign_that_encodes_nothing_fails_the_user(tmp_path: Path) -> None:
    steps = CAPTURES + "- get: {url: '/y/{{ pct }}'}\n- get: {url: /after}"
    assert sent(tmp_path, steps).targets == ["/x"]
    assert sent(tmp_path, "- get: {url: /a}\n- get: {url: '/100%'}\n- get: {url: /b}").targets == ["/a"]


def test_headers_are_latin_1(tmp_path: Path) -> None:
    steps = (
        CAPTURES + "- get: {url: /a, headers: {x-n: Müller £, x-c: 'x {{ uml }}'}, cookie: {k: '{{ uml }}'}}"
    )
    (_, request) = sent(tmp_path, steps).requests
    assert b"\r\nx-n: M\xfcller \xa3\r\nx-c: x M\xfcller\r\n" in request
    assert b": k=M\xfcller\r\n" in request
    (request,) = sent(tmp_path, "- post: {url: /a, body: x, headers: {x-n: £}}").requests
    assert "\r\nx-n: £\r\n".encode() in request


def test_other_characters_in_a_header_fail_the_user(tmp_path: Path) -> None:
    found, targets = counters(tmp_path, "- get: {url: /a}\n- get: {url: /b, headers: {x: 5 €}}")
    assert targets == ["/a"]
    assert (found["errors.ERR_INVALID_CHAR"], found["vusers.failed"]) == (1, 1)
    captured = CAPTURES + "- get: {url: /b, headers: {x: '{{ euro }}'}}\n- get: {url: /c}"
    found, targets = counters(tmp_path, captured)
    assert (targets, found["vusers.failed"]) == (["/x"], 1)


def test_values_of_a_file_that_no_header_can_hold(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("€\nx\n", encoding="utf-8")
    config = "  payload: {path: d.csv, fields: [u], order: sequence}\n"
    with Recorder() as server:
        steps = "- get: {url: /a, headers: {x: '{{ u }}'}}"
        (tmp_path / "s.yml").write_text(text(server.url, steps, config))
        offered(translate(["run", str(tmp_path / "s.yml")]))
    assert server.headers("x") == ["x"]


Sent = list[str | None]
JARS: dict[str, tuple[str, str, Sent]] = {
    "beside the server's": (
        "", "- get: {url: /cookie}\n- get: {url: /b}\n- get: {url: /c, cookie: {mine: 1}}\n- get: {url: /d}",
        [None, "sid=1", "sid=1; mine=1", "sid=1; mine=1"],
    ),
    "alone": (
        "", "- get: {url: /a/b, cookie: {mine: 1}}\n- get: {url: /c}\n- get: {url: /a/d, cookie: {two: 2}}\n"
        "- get: {url: /d, cookie: {three: 3}}\n- get: {url: /cookie}\n- get: {url: /e}\n- get: {url: /a/z}",
        ["mine=1", None, "mine=1; two=2", "three=3", None, "three=3; sid=1", "mine=1; two=2; three=3; sid=1"],
    ),
    "of every request": (
        "  http: {defaults: {cookie: {d: '1'}}}\n", "- get: {url: /b}\n"
        "- get: {url: /cookie, cookie: {m: x y}}\n"
        "- get: {url: /e}\n- get: {url: /z, cookie: {d: '5'}}",
        ["d=1", "d=1; m=x y", "d=1; m=x y; sid=1", "d=5; m=x y; sid=1"],
    ),
    "of one name": (
        "", "- get: {url: /cookie, cookie: {sid: own}}\n- get: {url: /b}\n"
        "- get: {url: /c, cookie: {sid: two}}\n"
        "- get: {url: /del}\n- get: {url: /e}",
        ["sid=own", "sid=1", "sid=two", "sid=two", None],
    ),
    "captured": (
        "", CAPTURES + "- get: {url: /y, cookie: {t: '{{ name }}', u: 'x;y'}}\n"
        "- get: {url: /z, cookie: {v: 1}}",
        [None, "t=foo; u=x", "t=foo; u=x; v=1"],
    ),
    "and a header": (
        "", "- get: {url: /a, headers: {Cookie: own=1}}\n- get: {url: /cookie}\n"
        "- get: {url: /c, headers: {Cookie: own=1}}",
        ["own=1", None, "sid=1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("config", "steps", "cookies"), JARS.values(), ids=JARS)
def test_cookies_of_requests(tmp_path: Path, config: str, steps: str, cookies: Sent) -> None:
    def parts(jars: Sent) -> list[list[str]]:
        return [sorted((jar or "").split("; ")) for jar in jars]

    assert parts(sent(tmp_path, steps, config).headers("cookie")) == parts(cookies)


PROCESSOR = """module.exports = {
  none: (r, c, e, d) => d(),
  sets: (r, c, e, d) => { r.qs = {b: 2}; d(); },
  changes: (r, c, e, d) => { r.qs.c = 3; d(); },
  searches: (r, c, e, d) => { r.searchParams = {s: 'x y', t: "q'~"}; d(); },
  url: (r, c, e, d) => { r.url += '?u=1&q="x"<y>`{z}^|'; d(); },
  headers: (r, c, e, d) => { r.headers = {'X-F': 'M\\u00fcller', 'x-n': 5}; d(); },
  euro: (r, c, e, d) => { r.headers = {'x-e': '\\u20ac'}; d(); },
  cookie: (r, c, e, d) => { r.cookie = {f: 'g'}; d(); },
};"""
BUILT: dict[str, tuple[str, Any]] = {
    "its own query": (
        "{url: '/a?x=1', qs: {a: 1, e: null, s: \"b '\"}, beforeRequest: none}",
        "/a?a=1&e=&s=b+%27",
    ),
    "a query replaced": ("{url: /a, qs: {a: 1}, beforeRequest: sets}", "/a?a=1"),
    "a query of a function only": ("{url: /a, beforeRequest: sets}", "/a"),
    "a query changed": ("{url: /a, qs: {a: 1}, beforeRequest: changes}", "/a?a=1&c=3"),
    "searchParams": ("{url: '/a?x=1', beforeRequest: searches}", "/a?s=x+y&t=q%27%7E"),
    "searchParams and qs": ("{url: /a, qs: {a: 1}, beforeRequest: searches}", "/a?a=1"),
    "a URL": ("{url: /a, beforeRequest: url}", "/a?u=1&q=%22x%22%3Cy%3E`{z}^|"),
}


@pytest.mark.parametrize(("step", "target"), BUILT.values(), ids=BUILT)
def test_queries_of_requests_that_functions_change(tmp_path: Path, step: str, target: str) -> None:
    assert sent(tmp_path, f"- get: {step}", processor=PROCESSOR).targets == [target]


def test_headers_and_cookies_of_functions(tmp_path: Path) -> None:
    steps = (
        "- get: {url: /cookie}\n- get: {url: /b, beforeRequest: [cookie, headers]}\n"
        "- get: {url: /c, beforeRequest: euro}\n- get: {url: /d}"
    )
    server = sent(tmp_path, steps, processor=PROCESSOR)
    assert server.targets == ["/cookie", "/b"]
    assert server.headers("cookie") == [None, "sid=1; f=g"]
    assert server.requests[1].startswith(
        b"GET /b HTTP/1.1\r\nuser-agent: Artillery (https://artillery.io)\r\nx-f: M\xfcller\r\nx-n: 5\r\n"
    )


PLUGIN = "  plugins: {{metrics-by-endpoint: {{{}}}}}\n"
ENDPOINTS = CAPTURES + (
    "- get: {url: '/u/{{ name }}?a={{ name }}'}\n- get: {url: '/n/{{ name }}', name: 'user {{ name }}'}\n"
    "- get: {url: '/m%C3%BCnchen a%20b#f'}\n- get: {url: '{{ target }}/t/{{ name }}'}\n"
)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("", ["/x", "/u/{{ name }}?a={{ name }}", "/n/{{ name }} (user {{ name }})", "/münchen a b",
              "{{ target }}/t/{{ name }}"]),
        ("stripQueryString: true", ["/x", "/u/{{ name }}", "/n/{{ name }} (user {{ name }})", "/münchen a b",
                                    "{{ target }}/t/{{ name }}"]),
        ("useOnlyRequestNames: true", ["/x", "/u/{{ name }}?a={{ name }}", "user {{ name }}", "/münchen a b",
                                       "{{ target }}/t/{{ name }}"]),
        ("ignoreUnnamedRequests: true", ["/n/{{ name }} (user {{ name }})"]),
    ],
)  # fmt: skip
def test_endpoints_are_named_by_their_templates(tmp_path: Path, options: str, names: list[str]) -> None:
    found, _ = counters(tmp_path, ENDPOINTS, PLUGIN.format(options))
    prefix, suffix = "plugins.metrics-by-endpoint.", ".codes.200"
    assert [key.removeprefix(prefix).removesuffix(suffix) for key in found if key.startswith(prefix)] == names


def test_endpoints_by_value(tmp_path: Path) -> None:
    config = "  variables: {id: 7}\n" + PLUGIN.format("groupDynamicURLs: false")
    found, _ = counters(tmp_path, "- get: {url: '/u/{{ id }}', name: 'n {{ id }}'}", config)
    assert found["plugins.metrics-by-endpoint./u/7 (n 7).codes.200"] == 1
    with pytest.raises(Exception, match="groupDynamicURLs"):
        counters(tmp_path, CAPTURES + "- get: {url: '/u/{{ name }}'}", config)
