"""Mistakes that people make in scripts: a sentence with file and line, and the exit code of bad input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.step import Step
from prony_frontends.artillery import script
from prony_frontends.artillery.script import parse
from prony_frontends.artillery.translate import translate
from tests import command
from tests.frontends.artillery.test_config import text

HEAD = "config: {target: 'http://127.0.0.1:1', phases: [{duration: 1, arrivalCount: 1}]}\n"
FLOW = "scenarios: [{flow: [{get: {url: /}}]}]\n"


def phased(phases: str) -> str:
    """A script with these phases."""
    return HEAD.replace("[{duration: 1, arrivalCount: 1}]", phases) + FLOW


WHOLE: dict[str, tuple[str | bytes, str]] = {
    "a tab that indents": ("config:\n\ttarget: x\n" + FLOW, "s.yml:2: "),
    "phases as a mapping": (phased("{duration: 1, arrivalRate: 1}"), "s.yml:1: found {'duration'"),
    "a duration that is a word": (phased("[{duration: abc, arrivalRate: 1}]"), "found 'abc'"),
    "a rate below 0": (phased("[{duration: 1, arrivalRate: -1}]"), "s.yml:1: found -1"),
    "a rate without end": (phased("[{duration: 1, arrivalRate: .inf}]"), "s.yml:1: .inf is no finite number"),
    "no phases": (phased("[]"), "expected at least one phase"),
    "no users": (phased("[{duration: 1, arrivalCount: 1, maxVusers: 0}]"), "s.yml:1: found 0"),
    "too many users": (
        phased("[{duration: 1, arrivalCount: 1, maxVusers: 100000000000}]"),
        "expected a number of users, at most 10,000,000",
    ),
    "weights of 0": (
        HEAD + "scenarios:\n  - {weight: 0, flow: []}\n  - {weight: 0, flow: []}\n", "weights are all 0",
    ),
    "a flow as a mapping": (HEAD + "scenarios: [{flow: {get: {url: /}}}]\n", "s.yml:2: found {'flow'"),
    "scenarios as a mapping": (HEAD + "scenarios: {flow: []}\n", "expected a list"),
    "a step that is nothing": (HEAD + "scenarios:\n  - flow:\n      -\n", "s.yml:4: found nothing; expected"),
    "a step that is a word": (HEAD + "scenarios: [{flow: [get /]}]\n", "found 'get /'; expected keys"),
    "an empty file": ("", "s.yml: expected keys with values"),
    "a list": ("- a\n- b\n", "s.yml: expected keys with values"),
    "a word": ("hello", "s.yml: expected keys with values"),
    "two documents": (HEAD + FLOW + "---\na: 1\n", "s.yml:3: this is not valid YAML"),
    "a list that does not end": (HEAD + "scenarios: [{flow: [{get: {url: /}}\n", "this is not valid YAML"),
    "a byte 0": (HEAD + "# \0\n" + FLOW, "s.yml:2: the character U+0000"),
    "UTF-16": ((HEAD + FLOW).encode("utf-16"), "it is not UTF-8 text"),
    "Latin-1": ((HEAD + "# é\n" + FLOW).encode("latin-1"), "it is not UTF-8 text"),
    "nested without end": ("a: " + "[" * 3000 + "]" * 3000 + "\n" + HEAD + FLOW, "nested too deeply"),
    "an alias of itself": ("a: &a\n  b: *a\n" + HEAD + FLOW, "nested too deeply"),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_a_file_that_is_no_script(name: str, tmp_path: Path) -> None:
    content, said = WHOLE[name]
    file = tmp_path / "s.yml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UsageError) as wrong:
        translate(["run", str(file)])
    assert said in str(wrong.value)
    assert str(wrong.value).startswith(f"{file}:")
    assert "\n" not in str(wrong.value)


STEPS = {
    "- get: {url: /, capture: {json: $.a}}": "expected a name in 'as'",
    "- get: {url: /, capture: [abc]}": "found 'abc'; expected keys with values",
    "- get: {url: /, headers: abc}": "found 'abc'; expected keys with values",
    "- get: {url: /, cookie: abc}": "found 'abc'; expected keys with values",
    "- get: {url: /, qs: abc}": "found 'abc'; expected keys with values",
    "- get: {url: /, auth: abc}": "found 'abc'; expected keys with values",
    "- get: {url: /, headers: {a b: c}}": "expected a header's name, not 'a b'",
    "- get: {url: /, probability: abc}": "expected a number from 0 to 100",
    "- get: {url: /, ifTrue: 5}": "found 5; expected an expression",
    "- get: {url: /, ifTrue: 'a ==='}": "not a comparison",
    "- get: {url: '/{{ $randomNumber(0, 99999999999999999999) }}'}": "up to 9,007,199,254,740,991",
    "- get: {url: '/{{ $randomString(99999) }}'}": "1 to 4096 characters",
    "- post: {url: /, form: abc}": "found 'abc'; expected keys with values",
    "- post: {url: /, formData: {a: {fromFile: .}}}": "expected a file",
    "- think: -1": "found -1; expected seconds",
    "- {loop: [{get: {url: /}}], count: -5}": "found -5; expected a count",
    "- {loop: , count: 5}": "found nothing; expected a list",
    "- parallel:": "found nothing; expected a list",
    "- get: /": "the keys of a request, url among them",
}


@pytest.mark.parametrize(("step", "said"), STEPS.items())
def test_a_step_that_cannot_be_done(step: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "s.yml"
    file.write_text(text("http://h:80", f"- get: {{url: /first}}\n{step}"))
    with pytest.raises(UsageError, match=rf"s\.yml:7: .*{re.escape(said)}"):
        translate(["run", str(file)])


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("  payload: {path: ., fields: [a]}\n", "Is a directory"),
        ('  payload: {path: "a\\0b", fields: [a]}\n', "expected a CSV file that can be read"),
        ("  payload: words\n", "expected a list"),
        ("  variables: [a]\n", "found ['a']; expected keys with values"),
        ("  defaults: abc\n", "found 'abc'; expected keys with values"),
        ("  http: abc\n", "found 'abc'; expected keys with values"),
        ("  http: {pool: abc}\n", "found 'abc'; expected a number of connections"),
        ("  http: {timeout: 0}\n", "found 0; expected seconds above 0"),
        ("  tls: abc\n", "found 'abc'; expected keys with values"),
    ],
)
def test_a_config_that_cannot_be_read(config: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "s.yml"
    file.write_text(text("http://h:80", "- get: {url: /}", config))
    with pytest.raises(UsageError, match=rf"s\.yml:4: .*{re.escape(said)}"):
        translate(["run", str(file)])


def test_a_mistake_is_bad_input_to_the_command(tmp_path: Path) -> None:
    file = tmp_path / "s.yml"
    file.write_text(HEAD + "scenarios: {flow: []}\n")
    done = command.run(["artillery", "run", file])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"prony: {file}:2: found {{'flow': []}}; expected a list\n"


def test_characters_that_are_written_as_two(tmp_path: Path) -> None:
    """As programs that write JSON do; half of one is sent as JavaScript sends it."""
    file = tmp_path / "s.json"
    step = '{"post": {"url": "/", "body": "\\ud83d\\ude00 \\ud800", "headers": {"x": "\\u00e9"}}}'
    file.write_text(f'{{"config": {{"target": "http://h"}}, "scenarios": [{{"flow": [{step}]}}]}}')
    (sent,) = translate(["run", str(file)]).trial.workload.scenarios[0].steps
    assert isinstance(sent, Step)
    assert sent.body == "\N{GRINNING FACE} \N{REPLACEMENT CHARACTER}"


def test_too_many_values_are_known_before_all_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading millions of them takes minutes."""
    monkeypatch.setattr(script, "MOST_NODES", 100)
    with pytest.raises(UsageError, match=r"s\.yml: more than 100 values"):
        parse("a: [" + "1," * 100 + "} this is no YAML", "s.yml")
    with pytest.raises(UsageError, match="this is not valid YAML"):
        parse("a: [" + "1," * 90 + "} this is no YAML", "s.yml")
