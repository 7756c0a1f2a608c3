"""What the probe sends in place of placeholders, and what it keeps of a response."""

from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.response import Capture
from prony.plan.workload import Feeder
from prony.trial.rendering import Values


def test_generators_render_values_of_their_kind() -> None:
    values = Values({})
    assert values.render("a${sequence start=10 step=2}") == "a8"
    assert values.render("${sequence}") == "0"
    assert 1 <= int(values.render("${random int 1 3}")) <= 3
    assert len(values.render("${random string 7}")) == 7
    assert values.render("${random choice red red}") == "red"
    assert len(values.render("${uuid}")) == 36
    assert values.render("5$ $${uuid}") == "5$ ${uuid}"


def test_rows_and_captured_values_are_known_by_name(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("name,town\nAda,Lon don\n")
    values = Values({"people": Feeder(file=str(file), order="random")})
    captures = {
        "id": Capture.model_validate({"json": "/items/0/id"}),
        "place": Capture(header="Location"),
        "n": Capture(regex=r'"id":\s*(\d+)'),
        "absent": Capture(header="X", default="none"),
    }
    assert values.take(captures, 200, {"location": "/7"}, b'{"items":[{"id": 42}]}') is None
    assert values.render("/${people.town}/${id}", path=True) == "/Lon%20don/42"
    assert values.render("${place} ${n} ${absent} ${people.town | url}") == "/7 42 none Lon%20don"
    missing = values.take({"id": Capture(regex="x(y)?")}, 200, {}, b"a")
    assert missing == "there is nothing to capture as 'id'"


def test_a_file_without_names_is_given_them(tmp_path: Path) -> None:
    file = tmp_path / "people.tsv"
    file.write_text("Ada\tLondon\n")
    feeder = Feeder(file=str(file), order="random", columns=("name", "town"), delimiter="\t")
    assert Values({"people": feeder}).render("${people.town}") == "London"


def test_every_kind_of_capture_that_can_be_found_by_hand_is() -> None:
    values = Values({})
    body = b'{"a":[{"id":1},{"id":22}]}'
    captures = {
        "status": Capture(status=True),
        "session": Capture(cookie="sid"),
        "second": Capture(regex=r'"id":(\d+)', match=2),
        "each": Capture.model_validate({"boundary": {"left": '"id":', "right": "}"}, "match": -1}),
        "rest": Capture.model_validate({"boundary": {"left": '"a":', "right": ""}}),
        "found": Capture(jsonpath="$.a[0].id"),
        "old": Capture(header="X", optional=True),
    }
    values.take({"old": Capture(header="X", default="was")}, 200, {}, b"")
    cookies = "other=1; Path=/, sid=7; HttpOnly"
    assert values.take(captures, 201, {"set-cookie": cookies}, body) is None
    assert values.render("${status} ${session} ${second} ${each_1} ${each_2} ${each_matchNr} ${old}") == (
        "201 7 22 1 22 2 was"
    )
    assert values.render("${rest | form}") == "%5B%7B%22id%22%3A1%7D%2C%7B%22id%22%3A22%7D%5D%7D"
    with pytest.raises(UsageError, match="found"):
        values.render("${found}")


def test_what_is_not_known_is_named() -> None:
    with pytest.raises(UsageError, match="idd"):
        Values({}).render("${idd}")
    with pytest.raises(UsageError, match="cannot be read"):
        Values({"f": Feeder(file="nowhere.csv", order="random")})


def test_numbers_and_digests_are_written_as_the_engine_writes_them() -> None:
    values = Values({}, {"n": "7", "below": "-7", "text": "abc"})
    assert (
        values.render("${n | digits 3}/${below | digits 3}/${n | plus -9}/${text | plus 1}")
        == "007/-007/-2/abc"
    )
    assert values.render("${text | md5 | upper}") == "900150983CD24FB0D6963F7D28E17F72"
