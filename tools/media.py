"""The terminal recording and the two pictures of docs/media, from real runs on this host: a load on the
reference server, and a comparison of two small servers. `python -m tools.media FOLDER` (5 minutes, Chromium).
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prony.load.engine import find_engine
from tests.report.browser import browsing

COLUMNS, ROWS = 100, 24
MERGED_S = 0.05
"""What a program writes within this time is one piece."""
FRAME_S = 1.0
"""Of what a live display draws anew, a frame per such time is kept."""
ERASED = re.compile(rb"(?=\r\x1b\[2K)")
HEIGHT = re.compile(rb"\r\x1b\[2K((?:\x1b\[1A\x1b\[2K)*)")
PAUSE_S = 2.0
"""The longest of a player."""
PICTURES = (("page.png", "light", 1280, 860), ("page-dark.png", "dark", 375, 812))
SERVER = """import asyncio, json, sys

ITEMS = [{"id": k, "name": f"item {k}"} for k in range(KEPT)]
WHOLE = json.dumps(ITEMS).encode()

async def serve(reader, writer):
    while await reader.readuntil(b"\\r\\n\\r\\n"):
        body = BODY
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)

async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()

asyncio.run(main())
"""
BODIES = {"old.py": "json.dumps(ITEMS).encode()", "new.py": "WHOLE"}


def record(words: Sequence[str], folder: Path, file: Path) -> int:
    """Runs the command in a terminal, and writes what it printed as asciinema's text format, version 2."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(words[0], list(words), os.environ | {"TERM": "xterm-256color", "CI": "1"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    begun_s = time.monotonic()
    events: list[tuple[float, bytes]] = [(0.0, f"$ {' '.join(words)}\r\n".encode())]
    while more := _read(terminal):
        now_s = round(time.monotonic() - begun_s, 3)
        last_s, said = events[-1]
        if len(events) > 1 and now_s - last_s < MERGED_S:
            events[-1] = (last_s, said + more)
        else:
            events.append((now_s, more))
    head = {"version": 2, "width": COLUMNS, "height": ROWS, "idle_time_limit": PAUSE_S, "title": words[0]}
    lines = [head, *([at_s, "o", said.decode(errors="replace")] for at_s, said in thinned(events))]
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def thinned(events: Sequence[tuple[float, bytes]]) -> list[tuple[float, bytes]]:
    """Without frames that the next one, of the same height, erases within FRAME_S of the last one kept."""
    pieces = [(at_s, piece) for at_s, said in events for piece in ERASED.split(said) if piece]
    kept: list[tuple[float, bytes]] = []
    for (at_s, piece), (next_s, following) in zip(pieces, [*pieces[1:], (0.0, b"")], strict=True):
        found, after = HEIGHT.match(piece), HEIGHT.match(following)
        alone = found is not None and piece.count(b"\n") == found[1].count(b"\x1b[1A")
        same = found is not None and after is not None and found[0] == after[0]
        if not (kept and alone and same and next_s < kept[-1][0] + FRAME_S):
            kept.append((at_s, piece))
    return kept


def _read(terminal: int) -> bytes:
    """Nothing once the program has ended."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


@contextmanager
def reference(port: int) -> Iterator[str]:
    """The reference server at this port, and its URL."""
    command = [str(find_engine()), "serve", "--listen", f"127.0.0.1:{port}", "--stdin-guard"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        yield f"http://127.0.0.1:{port}/"
        server.communicate()  # closes its input, which ends it


def page(folder: Path) -> Path:
    """Of a comparison of the two servers."""
    for name, body in BODIES.items():
        text = SERVER.replace("KEPT", "40").replace("BODY", body)
        (folder / name).write_text(text, encoding="utf-8")
    lines = [f"python3 {name} {{port}}" for name in BODIES]
    command = ["prony", "compare", *lines, "--quick", "--duet", "--report", "page.html"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "page.html"


def main(to: Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["PRONY_DB"] = str(folder / "results.db")
        with reference(8080) as url:
            code = record(("prony", "load", url, "-c", "64"), folder, to / "load.cast")
        assert code == 0, f"prony load ended with exit code {code}"
        made = page(folder)
        for name, scheme, width, height in PICTURES:
            with browsing(folder, scheme=scheme, width=width, height=height) as tab:
                tab.go(made.as_uri())
                (to / name).write_bytes(tab.picture())
    for file in sorted(to.iterdir()):
        print(f"{file}: {file.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
