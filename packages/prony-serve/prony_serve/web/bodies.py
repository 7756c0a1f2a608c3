"""Request bodies, read up to a limit of size and time."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs

import anyio
from starlette.requests import ClientDisconnect, Request

from prony_serve.web.refusal import Refusal

MOST_FORM_BYTES = 16 * 1024
FORM_S = 10.0
UPLOAD_S = 600.0
"""Timeouts for a whole body."""


async def form(request: Request) -> dict[str, str]:
    """The fields of a form, first value each. Raises Refusal: 400, 408, 413 or 415."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refusal(415, f"the body is '{kind[:60]}'; expected a form")
    body = bytearray()
    try:
        with anyio.fail_after(FORM_S):
            async for piece in request.stream():
                body += piece
                if len(body) > MOST_FORM_BYTES:
                    raise Refusal(413, f"the form is larger than {MOST_FORM_BYTES:,} bytes")
    except TimeoutError:
        raise Refusal(408, f"the form took longer than {FORM_S:.0f} s", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise Refusal(400, "the form ended early") from None
    fields = parse_qs(bytes(body).decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=32)
    return {name: values[0] for name, values in fields.items()}


@asynccontextmanager
async def saved(request: Request, most_bytes: int) -> AsyncIterator[Path]:
    """The body as a temporary file, deleted after the block. Raises Refusal: 400, 408, 413 or 507."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most_bytes:
        raise _too_large(most_bytes)
    with tempfile.TemporaryDirectory(prefix="prony-upload-") as folder:
        path = Path(folder) / "upload"
        try:
            with anyio.fail_after(UPLOAD_S):
                await _write(request, path, most_bytes)
        except TimeoutError:
            raise Refusal(408, f"the upload took longer than {UPLOAD_S:.0f} s; nothing was stored") from None
        except ClientDisconnect:
            raise Refusal(400, "the upload ended early; nothing was stored") from None
        except OSError as fault:
            raise Refusal(507, f"no room for the upload on the server: {fault.strerror}") from fault
        yield path


async def _write(request: Request, path: Path, most_bytes: int) -> None:
    got = 0
    async with await anyio.open_file(path, "wb") as file:
        async for piece in request.stream():
            got += len(piece)
            if got > most_bytes:
                raise _too_large(most_bytes)
            await file.write(piece)
    if not got:
        raise Refusal(400, "the body is empty; expected a file of prony results export")


def _too_large(most_bytes: int) -> Refusal:
    return Refusal(413, f"the upload is larger than {most_bytes / 2**20:.0f} MiB; nothing was stored")
