"""The recording and the pictures that the README links, and how they are made."""

from __future__ import annotations

import importlib.util
import json
import struct
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
MEDIA = ROOT / "docs" / "media"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("media", ROOT / "tools" / "media.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


media = load()


def test_a_recording_has_what_a_terminal_was_told_and_when(tmp_path: Path) -> None:
    script = "import os, sys, time; print(os.get_terminal_size(), flush=True); time.sleep(0.5)"
    script += "; print('än', end='')"
    code = media.record((sys.executable, "-c", script + "; sys.exit(3)"), tmp_path, tmp_path / "a.cast")
    head, *events = [json.loads(line) for line in (tmp_path / "a.cast").read_text().splitlines()]
    assert code == 3
    assert (head["version"], head["width"], head["height"]) == (2, 100, 24)
    assert all(kind == "o" for _, kind, _ in events)
    assert [at_s for at_s, _, _ in events] == sorted(at_s for at_s, _, _ in events)
    said = "".join(text for _, _, text in events)
    assert said.startswith(f"$ {sys.executable} -c import os")
    assert said.endswith("terminal_size(columns=100, lines=24)\r\nän")
    assert events[-1][0] - events[1][0] >= 0.4


def test_of_a_live_display_a_frame_a_second_is_kept_and_nothing_else_is_lost() -> None:
    one, two = b"\r\x1b[2K", b"\r\x1b[2K\x1b[1A\x1b[2K"
    events = [
        (0.0, b"$ prony\r\n"),
        (0.1, one + b"a" + one + b"b"),
        (0.5, one + b"c\r\nd"),
        (0.7, two + b"note\r\ne\r\nf"),
        (0.8, two + b"g\r\nh" + two + b"i\r\nj"),
        (2.0, two + b"the end\r\n"),
    ]
    assert [said for _, said in media.thinned(events)] == [
        b"$ prony\r\n",
        one + b"c\r\nd",
        two + b"note\r\ne\r\nf",
        two + b"i\r\nj",
        two + b"the end\r\n",
    ]


def test_those_of_the_readme_are_small_and_of_the_size_they_say() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    head, *events = [json.loads(line) for line in (MEDIA / "load.cast").read_text().splitlines()]
    assert (head["version"], len(events) > 3) == (2, True)
    assert (MEDIA / "load.cast").stat().st_size < 100_000
    assert "docs/media/load.cast" in readme
    for name, _scheme, width, height in media.PICTURES:
        picture = (MEDIA / name).read_bytes()
        assert struct.unpack(">II", picture[16:24]) == (width, height)
        assert len(picture) < 150_000
        assert f"docs/media/{name}" in readme
