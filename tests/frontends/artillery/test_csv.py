"""CSV files of config.payload: the values that Artillery 2.0.21 makes of them, recorded from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony_frontends.artillery import csv_rows, payload
from prony_frontends.artillery.js_numbers import cast, number_text
from prony_frontends.artillery.templates import json_value
from prony_frontends.artillery.translate import translate
from tests.frontends.artillery.test_config import text
from tests.frontends.artillery.test_translate import script
from tests.frontends.conftest import offered
from tests.frontends.recorder import Recorder

NUMBERS = {
    "007": "7", "0x1F": "0", "0b11": "0", " 5": "5", "5 ": "5", "1.50": "1.5", ".5": "0.5", "5.": "5",
    "1e3": "1000", "+49123": "49123", "-0": "0", "-5.25": "-5.25", "1e21": "1e+21", "1e-7": "1e-7",
    "0.00001": "0.00001", "12345678901234567890": "12345678901234567000", "08": "8", "\ufeff7": "7",
}  # fmt: skip
TEXTS = ("", " ", "x1", "1e", "1e400", "Infinity", "-", "1_000", "true", "1,5", "٣", "0x", "12-34")


def test_numbers_are_cast_as_by_csv_parse() -> None:
    for value, sent in NUMBERS.items():
        number = cast(value)
        assert number is not None, value
        assert number_text(number) == sent
    assert [cast(value) for value in TEXTS] == [None] * len(TEXTS)


@pytest.mark.everyday
@pytest.mark.needs("node")
def test_numbers_are_written_as_by_node() -> None:
    values = [
        0.1,
        1 / 3,
        1e20,
        123456789012345680000.0,
        5e-324,
        1.7976931348623157e308,
        -2.5e-10,
        2**53 + 2.0,
    ]
    program = "for (const v of process.argv.slice(1)) console.log(String(Number(v)))"
    done = subprocess.run(
        ["node", "-e", program, *map(repr, values)], capture_output=True, text=True, check=True, timeout=60
    )
    assert [number_text(value) for value in values] == done.stdout.split()


def test_numbers_of_a_script_are_written_as_in_javascript() -> None:
    assert json_value({"a": 12345678901234567890, "b": 1e-7, "c": 10**400}) == (
        '{"a":12345678901234567000,"b":1e-7,"c":null}'
    )


def read(
    content: str, mark: str = ",", *, skip_header: bool = False, skip_empty: bool = True
) -> list[list[str]]:
    return csv_rows.rows(content, mark, skip_header=skip_header, skip_empty=skip_empty)


def test_rows_are_those_of_csv_parse() -> None:
    assert read('"a,b","x""y"\n"l1\nl2", lead\n,""\n') == [["a,b", 'x"y'], ["l1\nl2", " lead"], ["", ""]]
    assert read("A,B\rC,D\r") == [["A", "B"], ["C", "D"]]
    assert read("A;\r\nC;D", ";") == [["A", ""], ["C", "D"]]
    assert read("A\n  \n\nC\n\n") == [["A"], ["  "], ["C"]]
    assert read("A\n\nC\n", skip_empty=False) == [["A"], [""], ["C"]]
    assert read("h\n1,2\n3,4\n", skip_header=True) == [["1", "2"], ["3", "4"]]
    assert read("\ufeffA,B\n") == [["\ufeffA", "B"]]


@pytest.mark.parametrize("content", ["A,B\nC\n", 'a"b\n', '"a"b\n', '"a\n', '\ufeff"a"\n'])
def test_what_csv_parse_refuses_is_refused(content: str) -> None:
    with pytest.raises(csv_rows.BadCsv):
        read(content)


def requests_with(tmp_path: Path, content: bytes, step: str, users: int, more: str = "") -> list[bytes]:
    """First lines and bodies that the server gets."""
    (tmp_path / "d.csv").write_bytes(content)
    with Recorder() as server:
        keys = f"  payload: {{path: d.csv, fields: [u], order: sequence{more}}}\n"
        body = text(server.url, step, keys).replace("arrivalCount: 2", f"arrivalCount: {users}")
        (tmp_path / "s.yml").write_text(body, encoding="utf-8")
        offered(translate(["run", str(tmp_path / "s.yml")]))
    bodies = (request.partition(b"\r\n\r\n")[2] for request in server.requests)
    return [f"{target} ".encode() + body for target, body in zip(server.targets, bodies, strict=True)]


STEP = "- post: {url: '/{{ u }}/x{{ u }}', json: {u: '{{ u }}', t: 'x{{ u }}'}}"


def test_each_value_is_cast_by_itself(tmp_path: Path) -> None:
    assert requests_with(tmp_path, b"007\nx1\n", STEP, 2) == [
        b'/7/x7 {"u":7,"t":"x7"}', b'/x1/xx1 {"u":"x1","t":"xx1"}',
    ]  # fmt: skip
    assert requests_with(tmp_path, b"007\n+1.50\n", STEP, 2) == [
        b'/7/x7 {"u":7,"t":"x7"}', b'/1.5/x1.5 {"u":1.5,"t":"x1.5"}',
    ]  # fmt: skip
    assert requests_with(tmp_path, b"007\n", STEP, 1, ", cast: false") == [
        b'/007/x007 {"u":"007","t":"x007"}'
    ]


def test_byte_order_marks_are_treated_as_there(tmp_path: Path) -> None:
    step = "- get: {url: '/?n={{ u }}'}"
    head = b'\xef\xbb\xbfname,town\r\nAda,"London, UK"\r\n'
    assert requests_with(tmp_path, head, step, 1, ", skipHeader: true") == [b"/?n=Ada "]
    assert requests_with(tmp_path, head, step, 1) == [b"/?n=%EF%BB%BFname "]
    assert requests_with(tmp_path, b"\xef\xbb\xbf7\n", STEP, 1) == [b'/7/x7 {"u":7,"t":"x7"}']


def test_names_of_columns_that_are_no_words(tmp_path: Path) -> None:
    content = b"first name,first name\nA,B\n"
    assert requests_with(tmp_path, content, "- get: {url: '/{{ u }}'}", 1, ", skipHeader: true") == [b"/A "]


def test_many_values_that_are_sent_otherwise_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload, "MOST_VALUES", 2)
    (tmp_path / "p.csv").write_text("007\n008\n009\n")
    keys = "  payload: {path: p.csv, fields: [a]}\n"
    with pytest.raises(UsageError, match="sends some otherwise"):
        script(tmp_path, text("http://h:80", "- get: {url: '/{{ a }}'}", keys))
