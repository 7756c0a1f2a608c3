"""What a right response looks like: everything that is declared must hold."""

import hashlib
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.workload import Workload, known, read
from tests.entries import requests

RIGHT = {"content-type": "application/json;charset=UTF-8"}


def test_a_right_response_has_no_objection() -> None:
    expect = Expectation(headers={"Content-Type": "JSON"}, body_contains=('"a"',), body_bytes=5)
    assert expect.why_not(200, RIGHT, b'["a"]') is None


def test_each_part_is_checked() -> None:
    assert "status 500" in (Expectation().why_not(500, {}, b"") or "")
    assert "header X" in (Expectation(headers={"X": "1"}).why_not(200, {}, b"") or "")
    assert "'b'" in (Expectation(body_contains=("b",)).why_not(200, {}, b"a") or "")
    assert " 3" in (Expectation(body_bytes=3).why_not(200, {}, b"a") or "")
    assert Expectation(body_equals="x").why_not(200, {}, b"a") is not None


def test_every_byte_of_a_long_body_counts() -> None:
    right = b"x" * 1000
    expect = Expectation(body_bytes=1000, body_sha256=hashlib.sha256(right).hexdigest())
    assert expect.why_not(200, {}, right) is None
    assert "SHA-256" in (expect.why_not(200, {}, right[:-1] + b"y") or "")
    with pytest.raises(ValueError, match="body_bytes"):
        Expectation(body_sha256="0" * 64)


def test_one_of_several_statuses_will_do() -> None:
    assert Expectation(status=(200, 404)).why_not(404, {}, b"") is None


def test_json_is_expected_by_pointer() -> None:
    expect = Expectation.model_validate({"json": {"/a/0": 1}, "json_exists": ["/b~1c"]})
    assert expect.why_not(200, {}, b'{"a":[1],"b/c":null}') is None
    assert "/b~1c" in (expect.why_not(200, {}, b'{"a":[1]}') or "")
    assert "/a/0" in (expect.why_not(200, {}, b'{"a":[2],"b/c":0}') or "")
    assert "JSON" in (expect.why_not(200, {}, b"<html>") or "")


def test_files_are_looked_for_beside_the_workload(tmp_path: Path) -> None:
    file = tmp_path / "people.yaml"
    file.write_text(
        "feeders: {people: {file: people.csv, order: sequence, at_end: recycle}}\n"
        "steps: [{path: '/${people.name}', body_file: photo.bin, method: PUT}]\n"
    )
    workload = read(file)
    assert workload.feeders["people"].file == str(tmp_path / "people.csv")
    assert requests(workload.steps)[0].body_file == str(tmp_path / "photo.bin")


def test_rows_may_stand_in_the_workload(tmp_path: Path) -> None:
    feeder = "order: sequence, at_end: recycle"
    file = tmp_path / "w.yaml"
    file.write_text(
        f"feeders: {{p: {{columns: [a, b], rows: [[x, y]], {feeder}}}}}\nsteps: [{{path: '/${{p.a}}'}}]\n"
    )
    workload = read(file)
    assert (workload.feeders["p"].file, workload.feeders["p"].rows) == (None, (("x", "y"),))
    for wrong, words in (("rows: []", "file and rows"), ("rows: [[x]]", "rows.*columns")):
        file.write_text(f"feeders: {{p: {{columns: [a, b], {wrong}, {feeder}}}}}\nsteps: [{{path: /}}]\n")
        with pytest.raises(UsageError, match=words):
            read(file)


def test_files_of_preparation_and_clean_up_are_looked_for_beside_it_too(tmp_path: Path) -> None:
    step = "[{path: /, method: PUT, body_file: a.bin, expect: {status: [200]}}]"
    file = tmp_path / "w.yaml"
    file.write_text(f"steps: [{{path: /}}]\nprepare: {step}\ncleanup: {step}\nconformance: {step}\n")
    workload = read(file)
    for steps in (requests(workload.prepare), requests(workload.cleanup), workload.conformance):
        assert steps[0].body_file == str(tmp_path / "a.bin")
    assert [step.path for step in workload.all_steps] == ["/"], "a load sends none of them"


def test_a_declared_setting_can_be_changed_and_no_other() -> None:
    slow = Workload(name="slow", steps=(Step(path="/wait?ms=${delay_ms}"),), delay_ms=150)
    assert slow.settings == {"delay_ms": 150}
    changed = slow.with_settings({"delay_ms": 5})
    assert (changed.delay_ms, changed.settings, slow.delay_ms) == (5, {"delay_ms": 5}, 150)
    assert [requests(workload.walks[0].steps)[0].path for workload in (slow, changed)] == [
        "/wait?ms=150",
        "/wait?ms=5",
    ]
    with pytest.raises(UsageError, match="'delay_ms'"):
        slow.with_settings({"delay": 5})
    with pytest.raises(UsageError, match="delay_ms is 0"):
        slow.with_settings({"delay_ms": 0})
    plain = Workload(name="plain", steps=(Step(path="/"),))
    assert plain.settings == {}
    with pytest.raises(UsageError, match=r"'plain'.*'delay_ms'"):
        plain.with_settings({"delay_ms": 5})


@pytest.mark.parametrize("file", sorted(known().values()), ids=lambda file: file.stem)
def test_every_workload_of_the_catalogue_declares_what_a_right_response_is(file: Path) -> None:
    workload = read(file)
    assert workload.title, "tables need one line for people"
    around = (*requests(workload.prepare), *requests(workload.cleanup))
    for step in (*workload.all_steps, *around, *workload.conformance):
        assert step.expect is not None, f"step '{step.name}' declares no right response"
        assert step.body_file is None or Path(step.body_file).is_file()
    for feeder in workload.feeders.values():
        assert Path(feeder.file or "").is_file()
    names = [step.name for step in workload.all_steps]
    assert len(set(names)) == len(names) or workload.scenarios, "steps of one name share a row of figures"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("title: nothing", "'steps'"),
        ("steps: [{path: '/a b'}]", "path"),
        ("steps: [{path: /, body: a, body_file: b}]", "body_file"),
        ("steps: [{path: /, capture: {id: {json: /id, header: x}}}]", "json"),
        ("steps: [{path: /, auth: {}}]", "basic and bearer"),
        ("steps: [{path: /, think: {kind: uniform, ms: 1}}]", "max_ms and min_ms"),
        ("steps: [{path: /, repeat: 0}]", "repeat"),
        ("{feeders: {f: {file: a, order: sequence}}, steps: [{path: /}]}", "at_end"),
        ("{scenarios: [{name: a, steps: []}]}", "steps"),
        ("{steps: [{path: /}], prepare: [{path: /, repeat: 0}]}", "repeat"),
        ("{steps: [{path: /}], conformance: [{name: unknown, path: /x}]}", "'unknown'"),
        ("{steps: [{path: /}], prepares: [{path: /}]}", "'prepare'"),
    ],
)
def test_what_cannot_be_walked_is_refused(tmp_path: Path, text: str, part: str) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as refusal:
        read(file)
    assert part in str(refusal.value)


def test_status_classes_stand_for_their_codes() -> None:
    expect = Expectation.model_validate({"status": ["2xx", 304], "not_status": [204]})
    assert expect.why_not(250, {}, b"") is None
    assert "2xx or 304" in (expect.why_not(404, {}, b"") or "")
    assert "204" in (expect.why_not(204, {}, b"") or "")
    assert Expectation(status=()).why_not(500, {}, b"") is None
    with pytest.raises(ValueError, match="2xx"):
        Expectation.model_validate({"status": ["20x"]})


@pytest.mark.parametrize(
    ("expect", "part"),
    [
        ({"body_not_contains": ["ell"]}, "'ell'"),
        ({"body_not_equals": "hello"}, "5 bytes"),
        ({"body_matches": ["^h", "x+"]}, "'x+'"),
        ({"body_not_matches": ["l{2}"]}, "'l{2}'"),
        ({"min_bytes": 6}, " 6"),
        ({"max_bytes": 4}, " 4"),
        ({"json_absent": ["/a"]}, "JSON"),
    ],
)
def test_what_must_not_be_is_refused(expect: dict[str, object], part: str) -> None:
    why_not = Expectation.model_validate(expect).why_not(200, {}, b"hello")
    assert part in (why_not or "")


def test_json_is_expected_to_match() -> None:
    """A text as it is, any other value as JSON."""
    expect = Expectation(json_matches={"/a": "^1.$"})
    assert expect.why_not(200, {}, b'{"a":12}') is None
    assert expect.why_not(200, {}, b'{"a":"1x"}') is None
    assert "'^1.$'" in (expect.why_not(200, {}, b'{"a":3}') or "")
    assert "/a" in (expect.why_not(200, {}, b"{}") or "")


def test_json_is_expected_not_to_be_there() -> None:
    expect = Expectation(json_absent=("/error",))
    assert expect.why_not(200, {}, b'{"a":1}') is None
    assert "/error" in (expect.why_not(200, {}, b'{"error":null}') or "")


@pytest.mark.parametrize(("method", "part"), [("get", "GET"), ("CONNECT", "CONNECT"), ("A B", "pattern")])
def test_methods_are_words_in_capitals(method: str, part: str) -> None:
    assert Step(path="/", method="PROPFIND").method == "PROPFIND"
    with pytest.raises(ValueError, match=part):
        Step(path="/", method=method)
