# SPDX-License-Identifier: Apache-2.0
"""The pages on Sanic with uvloop."""

from __future__ import annotations

import argparse
import asyncio

from sanic import Request, Sanic
from sanic.response import HTTPResponse, html, json, raw, text

LONGEST_MS = 60_000
PING = (
    "<html><head><title>Ping</title></head>\n"
    "<body><h1>Ping</h1>\n"
    "<p>The servlet is alive.</p>\n"
    "</body></html>\n"
)
LARGE = b"0123456789abcdef" * 65_536
METHODS = ["GET", "HEAD"]

parser = argparse.ArgumentParser()
parser.add_argument("--host", required=True)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--static", required=True)
parser.add_argument("--workers", type=int, default=1)
parser.add_argument("--cert")
parser.add_argument("--key")
options = parser.parse_args()

app = Sanic("pages")


@app.route("/", methods=METHODS)
async def hello(_: Request) -> HTTPResponse:
    return text("Hello, World!")


@app.route("/delay", methods=METHODS)
async def delay(request: Request) -> HTTPResponse:
    asked = request.args.get("ms", "150")
    if not asked.isdecimal() or int(asked) > LONGEST_MS:
        return text("expected ms as a number of at most 60000", status=400)
    await asyncio.sleep(int(asked) / 1000)
    return html("Hello World!")


@app.route("/Ping/PingServlet", methods=METHODS)
async def ping(_: Request) -> HTTPResponse:
    return html(PING)


@app.route("/json", methods=METHODS)
async def greeting(_: Request) -> HTTPResponse:
    return json({"message": "Hello, World!"})


@app.route("/large", methods=METHODS)
async def large(_: Request) -> HTTPResponse:
    return raw(LARGE)


app.static("/", options.static, name="pictures")

if __name__ == "__main__":
    tls = {"cert": options.cert, "key": options.key} if options.key else None
    app.run(host=options.host, port=options.port, workers=options.workers, ssl=tls)
