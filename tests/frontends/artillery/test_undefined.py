"""Texts that name what is not there go out as Artillery sends them, with a note each."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.think import Think
from prony_frontends.artillery import run
from prony_frontends.artillery.translate import translate
from tests.frontends.artillery.test_run import requests
from tests.frontends.codes import noted
from tests.frontends.conftest import Front, Served, moved, offered
from tests.programs import program

SCRIPT = """\
config:
  target: "{url}"
  phases: [{{duration: 1, arrivalCount: 1}}]
  variables: {{n: 5, gone: "{{{{ $processEnvironment.NOT_SET }}}}", part: "x {{{{ $env.NOT_SET }}}}"}}
scenarios:
  - flow:
      - get:
          url: "/a b/{{{{ email() }}}}/{{{{ nothing }}}}/${{x}}?x={{{{ f('y') }}}}"
          headers: {{X-A: "{{{{ nothing }}}}", X-B: "a {{{{ nothing }}}}", X-C: "{{{{ n + 1 }}}}"}}
      - get: {{url: "/never", ifTrue: nothing}}
      - get: {{url: "/always", ifTrue: "not nothing and n"}}
      - get: {{url: "/q", qs: {{a: "{{{{ nothing }}}}", b: "{{{{ g() }}}}", c: "it's"}}}}
      - post: {{url: "/form", form: {{a: "{{{{ nothing }}}}", b: "{{{{ $guid() }}}}", c: "{{{{ g() }}}}"}}}}
      - post: {{url: "/none", body: "a {{{{ $guid() }}}}"}}
      - post: {{url: "/text", body: "a {{{{ nothing }}}} {{{{ a b }}}} {{{{ }}}} {{{{ g() }}}}"}}
      - post:
          url: "/json"
          json:
            a: "{{{{ nothing }}}}"
            b: ["{{{{ nothing }}}}", "{{{{ n.x }}}}"]
            c: "{{{{ gone }}}} {{{{ part }}}}"
            d: "{{{{ new Date() }}}}"
            e: "a {{{{ $guid() }}}}"
            f: {{g: "{{{{ $environment }}}}"}}
            "k{{{{ nothing }}}}": "{{{{ n }}}} {{{{ n || 3 }}}}"
      - post:
          url: /keys
          username: u
          headers: {{X-O: {{{{ n }}}}}}
          json: {{id: {{{{ n }}}}, l: [{{{{ n }}}}], [a, 1.50]: 1, 2.50: 2, null: 3}}
"""
KEYS = b'{"id":{"[object Object]":null},"l":[{"[object Object]":null}],"a,1.5":1,"2.5":2,"null":3}'
JSON = (
    b'{"b":[null,null],"c":"undefined x undefined","d":"{{ new Date() }}","f":{},'
    b'"kundefined":"5 {{ n || 3 }}"}'
)


def sent(server: Served) -> list[tuple[str, bytes, frozenset[tuple[str, str]]]]:
    left_out = {"host", "accept-encoding"}
    return [
        (line, body, frozenset((k, v) for k, v in headers.items() if k not in left_out))
        for line, headers, body in requests(server.recorded())
    ]


def test_what_has_no_value_is_left_out_or_undefined(serve: Callable[..., Served], tmp_path: Path) -> None:
    server, file = serve(), tmp_path / "s.yml"
    file.write_text(SCRIPT.format(url=server.url))
    made = translate(["run", str(file)])
    offered(moved(made, server.port))
    assert server.ended()["requests"] == 8
    first, always, query, form, none, text, body, keys = sent(server)
    assert always[0] == "GET /always HTTP/1.1"
    assert first[0] == (
        "GET /a%20b/%7B%7B%20email()%20%7D%7D/undefined/$%7Bx%7D?x={{%20f(%27y%27)%20}} HTTP/1.1"
    )
    assert dict(first[2])["x-b"] == "a undefined"
    assert dict(first[2])["x-c"] == "{{ n + 1 }}"
    assert "x-a" not in dict(first[2])
    assert query[0] == "GET /q?a=&b=%7B%7B+g%28%29+%7D%7D&c=it%27s HTTP/1.1"
    assert form[1] == b"a=undefined&b=undefined&c=%7B%7B+g%28%29+%7D%7D"
    assert none[1] == b""
    assert text[1] == b"a undefined undefined undefined {{ g() }}"
    assert body[1] == JSON
    assert keys[1] == KEYS
    assert dict(keys[2])["authorization"] == "Basic dTo="
    assert dict(keys[2])["x-o"] == "[object Object]"
    for name in ("email()", "'nothing'", "$guid()", "NOT_SET"):
        assert noted(made.notes, "undefined", name)


def test_what_decides_the_load_must_have_a_value(tmp_path: Path) -> None:
    file = tmp_path / "s.yml"
    file.write_text(
        "config: {target: 'http://h', phases: [{duration: 1, arrivalCount: 1}]}\n"
        "scenarios: [{flow: [{loop: [{get: {url: /}}], count: '{{ $guid() }}'}]}]\n"
    )
    with pytest.raises(UsageError, match=r"s\.yml:2: .*no function"):
        translate(["run", str(file)])


PAUSES = {
    "{{ nothing }}": "val is not a non-empty string or a valid number. val=undefined",
    "{{ $pause() }}": "val is not a non-empty string or a valid number. val=undefined",
    "{{ pause() }}": "Invalid think time: {{ pause() }}",
    "soon": "Invalid think time: soon",
}


def pausing(url: str, file: Path) -> list[str]:
    """A scenario for each pause that is none; in each a request would follow."""
    flows = [
        f"  - {{flow: [{{get: {{url: /a}}}}, {{think: '{text}'}}, {{get: {{url: /never}}}}]}}"
        for text in PAUSES
    ]
    phases = "phases: [{duration: 1, arrivalCount: 12}]"
    file.write_text(f"config: {{target: '{url}', {phases}}}\nscenarios:\n" + "\n".join(flows) + "\n")
    return ["run", "-o", str(file.with_suffix(".json")), str(file)]


def errors(file: Path) -> dict[str, int]:
    counters: dict[str, int] = json.loads(file.with_suffix(".json").read_text())["aggregate"]["counters"]
    return {name: count for name, count in counters.items() if name.startswith(("errors.", "vusers.failed"))}


def test_a_pause_that_is_none_fails_the_user(
    serve: Callable[..., Served], front: Front, tmp_path: Path
) -> None:
    server, file = serve(), tmp_path / "s.yml"
    run(pausing(server.url, file), front.context(exit_like_original=True))
    assert server.ended()["requests"] == 12
    found = errors(file)
    assert found.pop("vusers.failed") == 12
    assert set(found) <= {f"errors.{name}" for name in PAUSES.values()}
    assert sum(found.values()) == 12
    assert "a think without time" in front.err.getvalue()


@pytest.mark.needs("artillery")
def test_the_real_artillerys_users_fail_so(serve: Callable[..., Served], tmp_path: Path) -> None:
    server, file = serve(), tmp_path / "s.yml"
    subprocess.run(
        [program("artillery"), *pausing(server.url, file)], capture_output=True, timeout=240, check=True,
        env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
    )  # fmt: skip
    assert server.ended()["requests"] == 12
    found = errors(file)
    assert found.pop("vusers.failed") == 12
    assert set(found) <= {f"errors.{name}" for name in PAUSES.values()}


def test_variables_are_drawn_once_for_the_run_and_pauses_each_time(tmp_path: Path) -> None:
    file = tmp_path / "s.yml"
    file.write_text(
        "config:\n  target: http://h\n  phases: [{duration: 1, arrivalCount: 1}]\n"
        "  variables: {token: '{{ $randomString(8) }}', name: 'u-{{ $randomNumber(10, 99) }}'}\n"
        "scenarios: [{flow: [{post: {url: '/{{ token }}', json: {t: '{{ token }}', n: '{{ name }}'}}},\n"
        "  {think: '{{ $randomNumber(1, 3) }}'}, {get: {url: /}}]}]\n"
    )
    made = translate(["run", str(file)])
    first, _ = made.trial.workload.scenarios[0].requests
    token = first.path.removeprefix("/")
    assert re.fullmatch(r"[A-Za-z0-9]{8}", token)
    assert re.fullmatch(rf'\{{"t":"{token}","n":"u-\d\d"\}}', first.body or "")
    assert first.think == Think(kind="uniform", min_ms=1000.0, max_ms=3000.0)
    assert noted(made.notes, "drawn_once")


@pytest.mark.needs("artillery")
def test_the_real_artillery_sends_the_same(serve: Callable[..., Served], tmp_path: Path) -> None:
    ours, theirs = serve(), serve()
    mine, its = tmp_path / "mine.yml", tmp_path / "its.yml"
    mine.write_text(SCRIPT.format(url=ours.url))
    its.write_text(SCRIPT.format(url=theirs.url))
    offered(translate(["run", str(mine)]))
    done = subprocess.run(
        [program("artillery"), "run", str(its)], capture_output=True, text=True, timeout=240, check=False,
        env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert ours.ended()["requests"] == theirs.ended()["requests"] == 8
    assert sent(ours) == sent(theirs)
