"""A small file that unpacks to more than memory holds is refused."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

MANY = 12 * 2**20
"""Lists that are less than the longest line, and in Python's memory nearly a gigabyte."""
HEADER = json.dumps({"format": "prony-results", "version": 2, "trials": 1, "experiment": {}}).encode() + b"\n"
PEAK_MB = 500
"""Of the whole process, whose libraries take a good hundred."""
BOMBS: dict[str, tuple[bytes, tuple[bytes, int], bytes]] = {
    "lists": (HEADER + b'{"a":[', (b"[],", MANY), b"[]]}\n"),
    "objects": (HEADER + b'{"a":[', (b"{},", MANY), b"{}]}\n"),
    "lists in the header": (HEADER[:-2] + b',"a":[', (b"[],", MANY), b"[]]}\n"),
    "lists in a record": (HEADER + b'{"trial":{"record":"', (b"[[],", MANY // 2), b'"}}\n'),
    "escaped lists in a record": (HEADER + b'{"trial":{"record":"', (b"\\u005b", MANY // 2), b'"}}\n'),
    "numbers": (HEADER + b'{"a":[', (b"1.5,", MANY), b"0]}\n"),
    "texts": (HEADER + b'{"a":[', (b'"ab",', MANY), b"0]}\n"),
    "numbers in a record": (HEADER + b'{"trial":{"record":"[', (b"1.5,", MANY), b'0]"}}\n'),
    "large characters": (HEADER + b'{"a":"', ("\U0001f600".encode(), MANY), b'"}\n'),
    "a line that is too long": (HEADER + b'{"a":"', (b"x", 200 * 2**20), b'"}\n'),
    "many lines": (HEADER, (b'{"trial":{}}\n', MANY), b"\n"),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("rescue", [False, True])
def test_a_small_file_that_becomes_large_is_refused_within_little_memory(
    tmp_path: Path, name: str, rescue: bool
) -> None:
    begin, (piece, times), end = BOMBS[name]
    file = tmp_path / "bomb"
    # A trial that was rescued is not compressed, and read as a whole.
    with file.open("wb") if rescue else gzip.open(file, "wb", compresslevel=1) as made:
        made.write(begin)
        for _ in range(0, times, 2**20):
            made.write(piece * 2**20)
        made.write(end)
    measured = (
        "import sys\n"
        "from prony.cli.main import main\n"
        f"sys.argv = ['prony', 'results', 'import', {str(file)!r}, '--db', {str(tmp_path / 'r.db')!r}]\n"
        "code = main()\n"
        "print(code, open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", measured], capture_output=True, text=True, check=False)
    code, peak_kb = map(int, done.stdout.split())
    assert (code, done.stderr.count("prony: ")) == (2, 1), done.stderr
    assert peak_kb // 1024 < PEAK_MB
