"""What is written to a file arrives whole or not at all, and where it was to go."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from prony.files import whole


def test_a_file_is_replaced_when_all_is_written(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    with whole(file) as made:
        made.write(b"new")
        made.flush()
        assert file.read_text() == "old"
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a", "new")]
    with pytest.raises(TypeError), whole(file) as made:
        made.writelines([b"half", "text"])  # type: ignore[list-item]
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a", "new")]


def test_a_link_stays_and_what_it_names_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    with whole(tmp_path / "link") as made:
        made.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "x"


def test_a_link_of_another_user_at_its_temporary_name_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").write_text("mine")
    (tmp_path / ".0.tmp").symlink_to("theirs")
    monkeypatch.setattr("secrets.token_hex", lambda _: "0")
    with pytest.raises(FileExistsError), whole(tmp_path / "a") as made:
        made.write(b"x")
    assert (tmp_path / "theirs").read_text() == "mine"


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with whole(pipe) as made:
        made.write(b"x")
    reader.join(10)
    assert (read, pipe.is_fifo()) == ([b"x"], True)


def test_a_name_of_the_longest_length_can_be_written(tmp_path: Path) -> None:
    with whole(tmp_path / ("x" * 255)) as made:
        made.write(b"x")
    assert (tmp_path / ("x" * 255)).read_text() == "x"
