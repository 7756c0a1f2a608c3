"""Errors in files name the file, the line, the key and the nearest valid one."""

from pathlib import Path

import pytest

from prony.errors import ExitCode, UsageError
from prony.plan import workload


def write(folder: Path, text: str) -> Path:
    file = folder / "mine.yaml"
    file.write_text(text)
    return file


def test_a_misspelt_key_is_named_with_its_line_and_the_nearest(tmp_path: Path) -> None:
    file = write(tmp_path, "title: x\nsteps:\n  - path: /\n    expct:\n      status: [200]\n")
    with pytest.raises(UsageError) as caught:
        workload.read(file)
    assert f"{file}:4:" in str(caught.value)
    assert "did you mean 'expect'?" in str(caught.value)
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_wrong_value_is_shown_with_what_was_expected(tmp_path: Path) -> None:
    file = write(tmp_path, "steps:\n  - path: hello world\n")
    with pytest.raises(
        UsageError, match=r"mine\.yaml:2: 'steps\.0\.path' is 'hello world': expected a path that starts"
    ):
        workload.read(file)


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the key 'steps' is missing"):
        workload.read(write(tmp_path, "title: x\n"))


@pytest.mark.parametrize("text", ["steps: [", "- a\n- b\n", "", "\tx: 1\n", "1: 2\n"])
def test_what_is_not_a_mapping_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        workload.read(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        workload.read(tmp_path / "none.yaml")


def test_an_unknown_workload_names_the_known_and_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'actuator-metrics'.*known workloads: .*hello"):
        workload.load("actuator-metric")


@pytest.mark.parametrize("name", sorted(workload.known()))
def test_every_workload_of_the_catalogue_can_be_read(name: str) -> None:
    assert workload.load(name).steps


def test_a_key_that_is_given_twice_is_a_mistake(tmp_path: Path) -> None:
    """YAML itself would take the last one without a word."""
    file = write(tmp_path, "steps:\n  - path: /a\n    method: GET\n    path: /b\n")
    with pytest.raises(UsageError, match=r"mine\.yaml:4: the key 'path' is given twice"):
        workload.read(file)


def test_a_value_that_holds_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="refers to itself"):
        workload.read(write(tmp_path, "title: &a [*a]\nsteps: [{path: /}]\n"))


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="found nothing"):
        workload.read(write(tmp_path, ""))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("steps: [{path: /, xyz: 1}]", "added_headers_at, auth, body"),
        ("steps: [{parallel: {atonce: 2}, steps: [{path: /}]}]", "at_once"),
        ("steps: [{path: /, auth: {zz: 1}}]", "bearer"),
    ],
)
def test_an_unknown_key_names_the_keys_of_its_own_place(tmp_path: Path, text: str, known: str) -> None:
    with pytest.raises(UsageError) as caught:
        workload.read(write(tmp_path, text + "\n"))
    said = str(caught.value)
    assert known in said
    assert ("steps" in said.partition("; known here: ")[2]) is False
