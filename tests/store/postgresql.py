"""A PostgreSQL server of the tests' own, for as long as a test session lasts: PostgreSQL's programs from the
PATH or from tools/fetch.py, on a free port of the loopback address. It does not run as root; where the tests
do, it runs as nobody.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prony.server.cache import cache_dir
from prony.server.sockets import free_port
from tests.programs import program

NOBODY = 65534
PATIENCE_S = 60.0


@contextmanager
def postgresql() -> Iterator[str]:
    """The URL of an empty database."""
    with tempfile.TemporaryDirectory(prefix="prony-postgresql-") as temporary:
        folder = Path(temporary)
        who: dict[str, Any] = {}
        if os.geteuid() == 0:
            folder.chmod(0o755)
            who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        programs = Path(program("postgresql")).resolve().parent
        fetched = (cache_dir("programs") / "postgresql").resolve()
        if who and programs.is_relative_to(fetched):  # in the cache of root, where nobody may not look
            shutil.copytree(fetched, folder / "fetched", symlinks=True)
            programs = folder / "fetched" / programs.relative_to(fetched)
        data = folder / "data"
        data.mkdir(mode=0o700)
        if who:
            os.chown(data, NOBODY, NOBODY)
        made = subprocess.run(
            [programs / "initdb", "-D", data, "-U", "prony", "-A", "trust", "-E", "UTF8", "--no-sync"],
            **who,
            cwd=data,
            env={"LC_ALL": "C", "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert made.returncode == 0, made.stdout + made.stderr
        port = free_port("127.0.0.1")  # not one of those that other tests' connections are given
        log = folder / "log"
        with log.open("wb") as writes:
            server = subprocess.Popen(
                [
                    *(programs / "postgres", "-D", data, "-k", data, "-p", str(port)),
                    *("-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"),
                ],
                **who,
                cwd=data,
                env={"LC_ALL": "C", "PATH": os.environ["PATH"]},
                stdin=subprocess.DEVNULL,
                stdout=writes,
                stderr=writes,
            )
        try:
            _wait(server, port, log)
            yield f"postgresql://prony@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)  # ends connections, and then itself
            server.wait(PATIENCE_S)


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and server.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0 and b"ready to accept" in log.read_bytes():
                return
        time.sleep(0.05)
    raise AssertionError(f"PostgreSQL did not get ready: {log.read_text(errors='replace')[-2000:]}")
