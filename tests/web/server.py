"""`prony serve` as a process, at a port of its own."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_S = 60.0


@contextmanager
def serving(db: str, *options: str) -> Iterator[str]:
    """The address of a site over this store, without a slash at its end."""
    command = [sys.executable, "-u", "-m", "prony", "serve", "--db", db, "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
        line = process.stdout.readline() if ready else ""
        assert "http://" in line, (line, process.stderr.read() if process.poll() is not None else "")
        yield "http://" + line.rpartition("http://")[2].strip().rstrip("/")
    finally:
        process.terminate()
        try:
            _, said = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        assert said == "", said
        assert process.returncode == 0
