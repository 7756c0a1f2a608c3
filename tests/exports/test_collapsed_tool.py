"""Collapsed stacks in another program: async-profiler's converter, which makes flame graphs of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from prony.report import exports
from tests.exports.test_profile_formats import view
from tests.programs import program


@pytest.mark.needs("jfrconv")
@pytest.mark.parametrize("servers", [1, 2])
def test_async_profiler_s_converter_makes_a_flame_graph_that_holds_every_stack(
    servers: int, tmp_path: Path
) -> None:
    """It reads its own flame graph, too: what comes out again is what went in."""
    made, graph, again = (tmp_path / name for name in ("made.collapsed", "graph.html", "again.collapsed"))
    text = exports.named("collapsed").write(view(servers)).text
    made.write_text(text, encoding="utf-8")
    for one, other in ((made, graph), (graph, again)):
        done = subprocess.run(
            [program("jfrconv"), str(one), str(other)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "<canvas" in graph.read_text(encoding="utf-8")
    assert sorted(again.read_text(encoding="utf-8").splitlines()) == sorted(text.splitlines())
