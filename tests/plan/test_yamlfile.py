"""Errors in files name the file, the line, the key and the nearest valid one."""

from pathlib import Path

import pytest

from prony.errors import ExitCode, UsageError
from prony.plan import workload, yamlfile


def write(folder: Path, text: str) -> Path:
    file = folder / "mine.yaml"
    file.write_text(text)
    return file


def test_a_misspelt_key_is_named_with_its_line_and_the_nearest(tmp_path: Path) -> None:
    file = write(tmp_path, "title: x\nsteps:\n  - path: /\n    expct:\n      status: [200]\n")
    with pytest.raises(UsageError) as caught:
        workload.read(file)
    assert f"{file}:4:" in str(caught.value)
    assert "'expect'" in str(caught.value)
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_wrong_value_is_shown_with_what_was_expected(tmp_path: Path) -> None:
    file = write(tmp_path, "steps:\n  - path: hello world\n")
    with pytest.raises(UsageError, match=r"mine\.yaml:2: 'steps\.0\.path' is 'hello world'"):
        workload.read(file)


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'steps'"):
        workload.read(write(tmp_path, "title: x\n"))


@pytest.mark.parametrize("text", ["steps: [", "- a\n- b\n", "", "\tx: 1\n", "1: 2\n"])
def test_what_is_not_a_mapping_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        workload.read(write(tmp_path, text))
    assert "\n" not in str(caught.value)


LAUGHS = "".join(f"l{k}: &l{k} [{', '.join([f'*l{k - 1}'] * 9)}]\n" for k in range(1, 9))
MERGED = "".join(f"m{k}: &m{k} {{<<: [{', '.join([f'*m{k - 1}'] * 9)}]}}\n" for k in range(1, 9))
REFUSED: dict[str, tuple[bytes, int]] = {
    "no day": (b"title: 2026-02-30\n", 1),
    "no month": (b"\ntitle: 2026-13-01T00:00:00Z\n", 2),
    "huge": (b"\nduration_s: " + b"9" * 5000, 2),
    "huge in hex": (b"\nduration_s: 0x" + b"f" * 5000, 2),
    "huge in bits": (b"\nduration_s: 0b" + b"1" * 300, 2),
    "sixtieths": (b"\nduration_s: 1" + b":1" * 50_000, 2),
    "21 digits": (b"\nduration_s: 999999999999999999999", 2),
    "deep list": (b"\nx: " + b"[" * 1000 + b"]" * 1000, 2),
    "deep mapping": (b"\nx: " + b"{a: " * 1000 + b"}" * 1000, 2),
    "deep block": (b"".join(b" " * k + b"a:\n" for k in range(300)), 51),
    "laughs": (f"l0: &l0 [1, 2, 3, 4, 5, 6, 7, 8, 9]\n{LAUGHS}".encode(), 4),
    "merged": (f"m0: &m0 {{a: 1}}\n{MERGED}".encode(), 4),
    "many": (b"x:\n" + b"- 1\n" * 2000, 1001),
    "itself": (b"title: x\nsteps: &a [1, *a]\n", 2),
    "itself in a mapping": (b"title: x\nsteps: &a {b: {c: *a}}\n", 2),
    "itself merged": (b"title: x\nsteps: &a {<<: *a}\n", 2),
    "no anchor": (b"title: x\nsteps: *a\n", 2),
    "python": (b"\ntitle: !!python/object/apply:os.system [ls]\n", 2),
    "unknown tag": (b"\ntitle: !x y\n", 2),
    "no bool": (b"\ntitle: !!bool x\n", 2),
    "no int": (b"\ntitle: !!int x\n", 2),
    "empty int": (b"\ntitle: !!int ''\n", 2),
    "no float": (b"\ntitle: !!float x\n", 2),
    "no timestamp": (b"\ntitle: !!timestamp x\n", 2),
    "no binary": (b"\ntitle: !!binary x\n", 2),
    "list as int": (b"\ntitle: !!int [1]\n", 2),
    "merge of a number": (b"\ntitle: {<<: 1}\n", 2),
    "list as key": (b"\n? [a]\n: b\n", 2),
    "mapping as key": (b"\n? {a: b}\n: c\n", 2),
    "two of a key": (b"title: x\ntitle: y\n", 2),
    "two merges": (b"a: &a {x: 1}\nb: {<<: *a, <<: *a}\n", 2),
    "two documents": (b"title: x\n---\ntitle: y\n", 2),
    "tab": (b"title: x\n\tsteps: y\n", 2),
    "NUL": (b"title: x\nsteps: \0\n", 2),
    "escape": (b"title: x\nsteps: \x1b[31m\n", 2),
    "Latin-1": (b"title: x\nsteps: \xe4\n", 2),
    "UTF-16": ("title: x".encode("utf-16"), 1),
    "surrogate": (b"title: x\nsteps: \xed\xa0\x80\n", 2),
    "escaped surrogate": (b'title: x\nsteps: "\\ud800"\n', 2),
    "no character": (b'title: x\nsteps: "\\U00110000"\n', 2),
    "no code point": (b'title: x\nsteps: "\\UFFFFFFFF"\n', 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_whatever_the_parser_makes_of_it_is_refused_with_its_line(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yamlfile, "MOST_NODES", 1000)
    content, line = REFUSED[name]
    file = tmp_path / "mine.yaml"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        yamlfile.read_mapping(file)
    said = str(caught.value)
    assert said.startswith(f"{file}:{line}: "), said
    assert "\n" not in said
    assert len(said) < len(str(file)) + 200


def test_a_file_that_is_too_long_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    with file.open("wb") as made:
        made.truncate(10 * 2**30)
    with pytest.raises(UsageError, match="more than 4,194,304 bytes"):
        yamlfile.read_mapping(file)
    with pytest.raises(UsageError, match="more than 4,194,304 bytes"):
        yamlfile.read_mapping(Path("/dev/zero"))


def test_aliases_merges_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes("\ufeffa: &a {x: [1, 2]}\nb: {<<: *a, y: 3}\nc: [*a, *a]\n".encode())
    data, lines = yamlfile.read_mapping(file)
    assert data == {"a": {"x": [1, 2]}, "b": {"x": [1, 2], "y": 3}, "c": [{"x": [1, 2]}, {"x": [1, 2]}]}
    assert (lines["b", "y"], lines["c", 1, "x"]) == (2, 1)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        workload.read(tmp_path / "none.yaml")


def test_an_unknown_workload_names_the_known_and_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"'actuator-metrics'.*hello"):
        workload.load("actuator-metric")


@pytest.mark.parametrize("name", sorted(workload.known()))
def test_every_workload_of_the_catalogue_can_be_read(name: str) -> None:
    assert workload.load(name).steps


def test_a_key_that_is_given_twice_is_a_mistake(tmp_path: Path) -> None:
    """YAML itself would take the last one without a word."""
    file = write(tmp_path, "steps:\n  - path: /a\n    method: GET\n    path: /b\n")
    with pytest.raises(UsageError, match=r"mine\.yaml:4: .*'path'"):
        workload.read(file)


def test_a_value_that_holds_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"mine\.yaml:1: "):
        workload.read(write(tmp_path, "title: &a [*a]\nsteps: [{path: /}]\n"))


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"mine\.yaml: "):
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
