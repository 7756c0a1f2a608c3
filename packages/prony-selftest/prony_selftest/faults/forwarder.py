"""A proxy that starts a web server and adds `Via` (RFC 9110, 7.6.3). Run by its path with host and port."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

VIA = b"\r\nVia: 1.1 forwarder"
END = b"\r\n\r\n"
BODY_BYTES = 64
CONNECT_ATTEMPTS = 200


async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    """Serves a client's connection by a connection to the server behind."""
    behind, ahead = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            ahead.write(await reader.readuntil(END))
            head = await behind.readuntil(END)
            body = await behind.readexactly(BODY_BYTES)
            writer.write(head[: -len(END)] + VIA + END + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        ahead.close()
        writer.close()


async def serve(host: str, port: int) -> None:
    """Serves until killed; the server behind ends with it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = int(free.getsockname()[1])
    server = str(Path(__file__).with_name("shared_port.py"))
    behind = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", server, "127.0.0.1", str(own), "works"
    )
    for _ in range(CONNECT_ATTEMPTS):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", own)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            break
    try:
        listening = await asyncio.start_server(lambda r, w: forward(r, w, own), host, port, backlog=1024)
        await listening.serve_forever()
    finally:
        behind.kill()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
