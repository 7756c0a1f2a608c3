"""Starts a node of Elasticsearch or OpenSearch, fetched by tools/fetch.py, on free loopback ports and never
as root: `python tools/search_node.py opensearch` prints its URL and runs it until Ctrl-C.

Elasticsearch comes from Maven Central, without Elastic's own modules: it has no data streams. Neither node
has ingest processors.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from prony.server.cache import cache_dir  # noqa: E402

ENGINES = ("elasticsearch", "opensearch")
NOBODY = 65534
HEAP_MIB = 256
PATIENCE_S = 120.0
HEALTH = "/_cluster/health?wait_for_status=yellow&timeout=5s"


class Failed(Exception):
    """The node did not start; `str()` says why."""


@contextmanager
def running(engine: str) -> Iterator[str]:
    """The URL of an empty node. Raises Failed."""
    fetched = cache_dir("programs") / engine
    if not (fetched / "bin" / engine).is_file():
        raise Failed(f"{engine} is not installed; run tools/fetch.py {engine}")
    with tempfile.TemporaryDirectory(prefix=f"prony-{engine}-") as temporary:
        folder = Path(temporary)
        who: dict[str, Any] = {}
        program = fetched / "bin" / engine
        if os.geteuid() == 0:
            folder.chmod(0o755)
            shutil.copytree(fetched.resolve(), folder / "program")  # root's cache is not readable for others
            program = folder / "program" / "bin" / engine
            who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        home = folder / "home"
        (home / "config").mkdir(parents=True)
        if who:
            for path in (home, home / "config"):
                os.chown(path, NOBODY, NOBODY)
        port, transport = _free_ports()
        log = folder / "log"
        with log.open("wb") as writes:
            node = subprocess.Popen(
                [program, home, str(port), str(transport)],
                **who,
                cwd=home,
                env={"PATH": os.environ["PATH"], "HOME": str(home), "JAVA_OPTS": _options(home)},
                stdin=subprocess.PIPE,  # its end stops the node, also if this process is killed
                stdout=writes,
                stderr=writes,
            )
        assert node.stdin is not None
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(node, url, log)
            yield url
        finally:
            node.stdin.close()
            try:
                node.wait(30)
            except subprocess.TimeoutExpired:
                node.kill()
                node.wait()


def _options(home: Path) -> str:
    """A small heap, and no optimising compiler, which does not pay off within a minute."""
    return f"-Xms{HEAP_MIB}m -Xmx{HEAP_MIB}m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={home}"


def _free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as http, socket.create_server(("127.0.0.1", 0)) as transport:
        return http.getsockname()[1], transport.getsockname()[1]


def _wait(node: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and node.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}{HEALTH}", timeout=10) as response:
                if response.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    gone = node.poll() is not None
    ended = f"ended with {node.returncode}" if gone else f"was not ready in {PATIENCE_S:.0f} s"
    raise Failed(f"the node {ended}: {log.read_text(errors='replace')[-2000:]}")


def main(names: list[str]) -> int:
    """Runs one engine until Ctrl-C or the end of standard input."""
    if len(names) != 1 or names[0] not in ENGINES:
        print(f"usage: tools/search_node.py ENGINE; expected one of {', '.join(ENGINES)}")
        return 2
    try:
        with running(names[0]) as url:
            print(url, flush=True)
            sys.stdin.read()
    except Failed as fault:
        print(fault, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
