"""CPU profiles in Go's own tool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from prony.report import exports
from tests.exports.test_profile_formats import view
from tests.programs import program


@pytest.mark.needs("go")
def test_go_tool_pprof_reads_the_functions_and_their_samples(tmp_path: Path) -> None:
    file = tmp_path / "made.pb.gz"
    content = exports.named("pprof").write(view(1)).content
    assert isinstance(content, bytes)
    file.write_bytes(content)
    done = subprocess.run(
        [program("go"), "tool", "pprof", "-top", "-nodecount=10", str(file)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    told = {row[-1]: row[0] for row in rows if len(row) >= 6}
    assert told["app/Burn.spin_[j]"] == "5"
    assert told["start_thread"] == "1"
