"""HTTP/2 faults: server limits that block the client, connections closed early, another version."""

from __future__ import annotations

from functools import partial

from prony.plan.load import ClosedLoad, Connections
from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.workload import Workload
from prony_selftest.faults.model import Entry, Setup, coded

SERVE = ("--http2", "--work", "100us")
SHARED = Connections(http_version="2", streams=8)
"""Eight users with a stream each on one connection."""
UPLOAD = "x" * 32_768


def _upload() -> Workload:
    """A body is echoed."""
    step = Step(
        name="upload",
        method="POST",
        path="/echo",
        body=UPLOAD,
        expect=Expectation(status=(200,), body_bytes=len(UPLOAD)),
    )
    return Workload(name="upload", steps=(step,))


CLEAN = Setup(serve=SERVE, connections=SHARED, load=ClosedLoad(users=8))

HTTP2: tuple[Entry, ...] = (
    Entry(44, "a flow-control window of 1 KiB",
        "over HTTP/2 the server takes 1 KiB of a body at a time: uploads wait for it in the client",
        Setup(serve=(*SERVE, "--window-bytes", "1024"), connections=SHARED, workload=_upload()), ("streams",),
        Setup(serve=SERVE, connections=SHARED, workload=_upload()), partial(coded, "streams", "flow_control"),
        other_tools=False),
    Entry(45, "one stream at a time",
        "over HTTP/2 the server takes one stream per connection where eight are requested: seven users wait",
        Setup(serve=(*SERVE, "--streams", "1"), connections=SHARED), ("streams",), CLEAN,
        partial(coded, "streams", "streams"), other_tools=False),
    Entry(46, "GOAWAY after 100 requests",
        "over HTTP/2 the server ends each connection after 100 requests: the load is one of new connections",
        Setup(serve=(*SERVE, "--close-after", "100"), connections=SHARED), ("connections",), CLEAN,
        other_tools=False),
    Entry(47, "HTTP/1.1 in place of HTTP/2",
        "HTTP/2 is requested, the server falls back to HTTP/1.1 by ALPN: it is not the requested load",
        Setup(tls=True, connections=SHARED), (), Setup(serve=SERVE, tls=True, connections=SHARED),
        refused="ALPN", other_tools=False),
)  # fmt: skip
