"""What a right answer looks like: everything that is declared must hold."""

from prony.plan.workload import Expectation

RIGHT = {"content-type": "application/json;charset=UTF-8"}


def test_a_right_answer_has_no_objection() -> None:
    expect = Expectation(headers={"Content-Type": "JSON"}, body_contains=('"a"',), body_bytes=5)
    assert expect.why_not(200, RIGHT, b'["a"]') is None


def test_each_part_is_checked() -> None:
    assert "status 500" in (Expectation().why_not(500, {}, b"") or "")
    assert "header X" in (Expectation(headers={"X": "1"}).why_not(200, {}, b"") or "")
    assert "does not contain" in (Expectation(body_contains=("b",)).why_not(200, {}, b"a") or "")
    assert "expected 3" in (Expectation(body_bytes=3).why_not(200, {}, b"a") or "")
    assert "differs" in (Expectation(body_equals="x").why_not(200, {}, b"a") or "")


def test_one_of_several_statuses_will_do() -> None:
    assert Expectation(status=(200, 404)).why_not(404, {}, b"") is None
