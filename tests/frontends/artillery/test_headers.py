"""Checks of headers and of the content type: a response passes where it does with the plugin expect of the
real Artillery.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from prony_frontends.artillery import run
from prony_frontends.artillery.translate import translate
from tests.frontends.artillery.test_config import text
from tests.frontends.artillery.test_jmespath import counted
from tests.frontends.codes import noted
from tests.frontends.conftest import quick_desk
from tests.frontends.site import Response, site
from tests.programs import program

PLUGIN = "  plugins: {expect: {}}\n"
JSON, HTML = "application/json", "text/html"
Case = tuple[dict[str, Any], Response]


def with_headers(*lines: tuple[str, str]) -> Response:
    return Response("x", HTML, more=lines)


HOLDS: tuple[Case, ...] = (
    ({"contentType": "json"}, Response("{}", JSON)),
    ({"contentType": "json"}, Response("[]", f"{JSON}; charset=utf-8")),
    ({"contentType": "json"}, Response("{}", "application/problem+json")),
    ({"contentType": HTML}, Response("x", HTML)),
    ({"contentType": "TEXT/html; Charset=UTF-8"}, Response("x", "text/HTML; charset=utf-8")),
    ({"headerEquals": ["x-by", "me"]}, with_headers(("X-By", "me"))),
    ({"headerEquals": ["x-by", 5]}, with_headers(("X-By", "5"))),
    ({"headerEquals": ["x-by", True]}, with_headers(("x-by", "true"))),
    ({"headerEquals": ["x-by", "a+b (c) 50% <d>"]}, with_headers(("x-by", "a+b (c) 50% <d>"))),
    ({"headerEquals": ["content-type", HTML]}, with_headers()),
    ({"headerEquals": ["vary", "a, b"]}, with_headers(("Vary", "a, b"))),
    ({"headerEquals": ["vary", "a, b"]}, with_headers(("Vary", "a"), ("X-By", "c"), ("Vary", "b"))),
    ({"cdnHit": True}, with_headers(("X-Cache", "Hit from cloudfront"))),
    ({"cdnHit": True}, with_headers(("CF-Cache-Status", "STALE"))),
    ({"cdnHit": False}, with_headers(("X-Vercel-Cache", "MISS"), ("X-Cache", "HIT"))),
    ({"hasProperty": "a"}, Response('{"a": 1}', JSON)),
    ({"notHasProperty": "b"}, Response("[1]", JSON)),
)
FAILS: tuple[Case, ...] = (
    ({"contentType": "json"}, Response("no JSON", JSON)),
    ({"contentType": "json"}, Response("5", JSON)),
    ({"contentType": "json"}, Response("null", JSON)),
    ({"contentType": "json"}, Response("", JSON)),
    ({"contentType": "json"}, Response("{}", HTML)),
    ({"contentType": "json"}, Response("{}", "Application/JSON")),
    ({"contentType": HTML}, Response("x", f"{HTML}; charset=utf-8")),
    ({"contentType": "html"}, Response("x", HTML)),
    ({"contentType": JSON}, Response("{}", "application/problem+json")),
    ({"headerEquals": ["x-by", "me"]}, with_headers(("X-By", "me too"))),
    ({"headerEquals": ["x-by", "me"]}, with_headers(("X-By", "Me"))),
    ({"headerEquals": ["x-by", "m."]}, with_headers(("X-By", "me"))),
    ({"headerEquals": ["x-by", "me"]}, with_headers(("X-Other", "me"))),
    ({"headerEquals": ["x-by", ""]}, with_headers(("X-By", ""))),
    ({"headerEquals": ["x-by", ""]}, with_headers()),
    ({"headerEquals": ["vary", "a"]}, with_headers(("Vary", "a"), ("Vary", "b"))),
    ({"headerEquals": ["vary", "b"]}, with_headers(("Vary", "a, b"))),
    ({"cdnHit": True}, with_headers(("X-Cache", "MISS, HIT"))),
    ({"cdnHit": False}, with_headers(("X-Cache", "HIT"))),
    ({"cdnHit": True}, with_headers()),
    ({"hasProperty": "a"}, Response('{"a": 1}', HTML)),
    ({"notHasProperty": "b"}, Response("5", JSON)),
    ({"notHasProperty": "b"}, Response("{}", HTML)),
    ({"jmespath": "a == `1`"}, Response('{"a": 1}', HTML)),
)
STATES = {"ok": (HOLDS, 0), "failed": (FAILS, 21)}
"""Cases, and the exit code of a run with all of them."""


def written(folder: Path, port: int, cases: tuple[Case, ...]) -> tuple[str, Path]:
    """A script with a request for each case, and where its report goes."""
    steps = "".join(
        f"- get: {{url: /{number}, expect: [{json.dumps(check)}]}}\n"
        for number, (check, _) in enumerate(cases)
    )
    file = folder / "s.yml"
    file.write_text(text(f"http://127.0.0.1:{port}", steps, PLUGIN))
    return str(file), folder / "r.json"


def counters(report: Path) -> dict[str, int]:
    return counted(json.loads(report.read_text())["aggregate"]["counters"])


@pytest.mark.parametrize(("state", "asked"), STATES.items(), ids=STATES)
def test_each_passes_or_fails(tmp_path: Path, state: str, asked: tuple[tuple[Case, ...], int]) -> None:
    cases, exits = asked
    with site({f"/{number}": response for number, (_, response) in enumerate(cases)}) as served:
        script, report = written(tmp_path, served.port, cases)
        code = run(["run", "-q", "-o", str(report), script], quick_desk()[0])
    found = counters(report)
    assert found[f"plugins.expect.{state}"] == 2 * len(cases), found
    assert {name.split(".")[2] for name in found} == {state}
    assert code == exits


@pytest.mark.needs("artillery")
@pytest.mark.parametrize(("state", "asked"), STATES.items(), ids=STATES)
def test_as_with_the_real_artillery(tmp_path: Path, state: str, asked: tuple[tuple[Case, ...], int]) -> None:
    cases, exits = asked
    with site({f"/{number}": response for number, (_, response) in enumerate(cases)}) as served:
        script, report = written(tmp_path, served.port, cases)
        done = subprocess.run(
            [program("artillery"), "run", "-q", "-o", str(report), script],
            capture_output=True, text=True, timeout=240, check=False,
            env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
        )  # fmt: skip
        theirs = counters(report)
        run(["run", "-q", "-o", str(report), script], quick_desk()[0])
    assert counters(report) == theirs
    assert theirs[f"plugins.expect.{state}"] == 2 * len(cases), done.stdout[-3000:]
    assert done.returncode == exits


def test_compression_is_offered_where_no_body_is_looked_into(tmp_path: Path) -> None:
    script, _ = written(tmp_path, 1, (({"headerEquals": ["x-by", "me"]}, Response()),))
    made = translate(["run", script])
    (step,) = made.trial.workload.scenarios[0].requests
    assert step.headers["accept-encoding"] == "gzip, deflate, br"
    assert not noted(made.notes, "read_plain")
    script, _ = written(tmp_path, 1, (({"contentType": "json"}, Response()),))
    made = translate(["run", script])
    (step,) = made.trial.workload.scenarios[0].requests
    assert "accept-encoding" not in step.headers
    assert [note.code for note in made.notes].count("read_plain") == 1
