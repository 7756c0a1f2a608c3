"""`--push` on a command that measures: its trial arrives, and a cluster that is down changes nothing but a
sentence.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("opensearchpy", reason="opensearch-py is not installed: make setup")

from prony_serve.documents import EXPERIMENTS, TRIALS
from tests.e2e.conftest import Lab
from tests.load.test_engine import Reference
from tests.push.far_end import far_end

SHORT = ("-c", "2", "-d", "1s", "--warmup", "500ms")


@pytest.mark.e2e
def test_a_trial_arrives_while_its_command_runs_and_a_cluster_that_is_down_ends_nothing(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path, env={"PRONY_CACHE": str(tmp_path / "cache")})
    server = Reference()
    try:
        with far_end() as end:
            done = lab.run("load", server.url, *SHORT, "--push", end.url)
            streams = Counter(one["_stream"] for one in end.documents.values())
            assert (streams[TRIALS], streams[EXPERIMENTS]) == (1, 1), done.stderr
            assert "1 trial (1 already pushed)" in done.stderr, "sent when it ended, not at the end"
        with far_end(everywhere=401) as end:
            refused = lab.run("load", server.url, *SHORT, "--push", end.url)
            assert refused.returncode in {0, 3}, "the exit code is that of the measurement"
            assert f"--to {end.url}" in refused.stderr, "how to continue"
            end.everywhere = None
            assert lab.run("results", "push", "latest", "--to", end.url).returncode == 0
            assert Counter(one["_stream"] for one in end.documents.values())[TRIALS] == 1
    finally:
        server.finish()
