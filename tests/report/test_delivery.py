"""A reader of standard output who leaves early costs neither the page nor the exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from pathlib import Path
from pydantic import BaseModel

from prony.report.delivery import deliver


class Made(BaseModel):
    figures: list[int]


deliver(
    as_json=sys.argv[1] == "json",
    as_object=lambda: Made(figures=list(range(100_000))),
    table=lambda console: [console.print(f"line {n}") for n in range(100_000)],
    page=lambda: "<html>the page</html>",
    report=Path(sys.argv[2]),
)
sys.exit(3)
"""


@pytest.mark.parametrize("form", ["json", "table"])
def test_the_page_is_written_although_nobody_reads_the_output(form: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, form, str(page)],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert page.read_text() == "<html>the page</html>"
    assert done.stderr == f"report: {page}\n", "and nothing is said of the pipe"
    assert done.returncode == 3, "the exit code is that of what was measured"
