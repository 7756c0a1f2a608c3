"""Values of a script as Artillery 2.0.21 reads them: what YAML makes of them, and the user in a URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.plan.step import Step, requests
from prony_frontends.artillery.translate import translate
from prony_frontends.base import Refused
from tests.frontends.artillery.test_config import text


def steps(folder: Path, lines: str, url: str = "http://h") -> list[Step]:
    (folder / "s.yml").write_text(text(url, lines), encoding="utf-8")
    workload = translate(["run", str(folder / "s.yml")]).trial.workload
    return list(requests(workload.scenarios[0].steps if workload.scenarios else workload.steps))


def test_the_user_of_a_url_is_sent(tmp_path: Path) -> None:
    lines = "- get: {url: /a}\n- get: {url: 'http://o:q@h/x'}\n- get: {url: 'http://h/x'}\n"
    lines += "- get: {url: /a, auth: {user: s, pass: t}}\n- get: {url: /a, headers: {authorization: own}}\n"
    found = [step.auth and step.auth.basic for step in steps(tmp_path, lines, "http://me:p%40s@h")]
    pairs = [one and (one.user, one.password) for one in found]
    assert pairs == [("me", "p@s"), ("o", "q"), None, ("s", "t"), None]


def test_the_query_of_the_target_stays(tmp_path: Path) -> None:
    (step,) = steps(tmp_path, "- get: {url: /a}", "http://h/?k=1")
    assert step.path == "/?k=1/a"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("{a: 1e3, b: 1.5E-2, c: 1e, d: '1e3'}", '{"a":1000,"b":0.015,"c":"1e","d":"1e3"}'),
        ("{a: 2020-01-31, b: '2020-01-31'}", '{"a":"2020-01-31T00:00:00.000Z","b":"2020-01-31"}'),
        ("{a: 2020-01-31T10:00:00+02:00}", '{"a":"2020-01-31T08:00:00.000Z"}'),
        ("{'{{ $env.NO }}k': 1, b: 2}", '{"b":2,"undefinedk":1}'),
    ],
)
def test_json_of_plain_values(tmp_path: Path, given: str, sent: str) -> None:
    (step,) = steps(tmp_path, f"- post: {{url: /a, json: {given}}}")
    assert step.body == sent


@pytest.mark.parametrize(
    "lines",
    [
        "- get: {url: /a, headers: {x: 2020-01-31}}",
        "- get: {url: /a, capture: {json: $.a.length, as: n}}",
        "- get: {url: /a, capture: {header: set-cookie, as: n}}",
        "- loop: [{get: {url: '/{{ $loopCount }}'}}, {loop: [{get: {url: /b}}], count: 2}]\n  count: 3",
    ],
    ids=["date", "length", "cookies", "loops"],
)
def test_what_would_differ_is_refused(tmp_path: Path, lines: str) -> None:
    with pytest.raises(Refused):
        steps(tmp_path, lines)
