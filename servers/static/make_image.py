"""Writes image.png beside this file: rings of a brake drum, 64 x 48 pixels of 8-bit grey.

The pixels are stored without compression, so the bytes do not depend on a version of zlib.
"""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path

WIDTH, HEIGHT = 64, 48


def grey(x: int, y: int) -> int:
    """Rings around the middle, with eight spokes."""
    dx, dy = x - WIDTH / 2, y - HEIGHT / 2
    ring = math.cos(math.hypot(dx, dy))
    spoke = math.cos(8 * math.atan2(dy, dx))
    return round(127.5 + 80 * ring + 40 * spoke)


def chunk(kind: bytes, content: bytes) -> bytes:
    """Length, kind, content, checksum (PNG, section 5.3)."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def main() -> None:
    """Make the image."""
    rows = b"".join(b"\0" + bytes(grey(x, y) for x in range(WIDTH)) for y in range(HEIGHT))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 0, 0, 0, 0)
    png = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 0))
        + chunk(b"IEND", b"")
    )
    (Path(__file__).parent / "image.png").write_bytes(png)


if __name__ == "__main__":
    main()
