"""JMeter's log of samples (JTL, CSV with its default columns) out of the engine's request log.

Must not know how requests were offered.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from http.client import responses
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from prony.errors import UsageError
from prony.frontends.jmeter import samples
from prony.frontends.jmeter.requests import PORTS
from prony.frontends.jmeter.samples import Made, Sample
from prony.frontends.jmeter.thread_names import ThreadNames
from prony.load.request_log import LoggedRequest
from prony.plan.workload import Workload

COLUMNS = ("timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName", "dataType",
           "success", "failureMessage", "bytes", "sentBytes", "grpThreads", "allThreads", "URL", "Latency",
           "IdleTime", "Connect")  # fmt: skip
JAVA = {
    "connect_refused": ("org.apache.http.conn.HttpHostConnectException", "Connection refused"),
    "connect_timeout": ("org.apache.http.conn.ConnectTimeoutException", "Connect timed out"),
    "timeout": ("java.net.SocketTimeoutException", "Read timed out"),
    "premature_close": ("org.apache.http.NoHttpResponseException", "The target server failed to respond"),
    "read": ("java.net.SocketException", "Connection reset"),
    "write": ("java.net.SocketException", "Broken pipe"),
    "tls": ("javax.net.ssl.SSLException", "TLS failed"),
    "address_unavailable": ("java.net.NoRouteToHostException", "Cannot assign requested address"),
    "descriptors": ("java.net.SocketException", "Too many open files"),
}
"""Kinds of the engine's errors -> the exception that JMeter names, and its words."""
OTHER = "org.apache.http.client.ClientProtocolException"


def open_log(path: Path, replace: bool) -> IO[str]:
    """The file for rows, with the line of names where it is new; else rows are added, as JMeter does. Raises
    UsageError when it cannot be written.
    """
    try:
        file = path.open("w" if replace else "a", newline="", encoding="utf-8")
    except OSError as fault:
        raise UsageError(
            f"the log {path} cannot be written: {fault.strerror or fault}; "
            "name a file in a folder that is there"
        ) from fault
    if file.tell() == 0:
        file.write(",".join(COLUMNS) + "\n")
    return file


class Servers:
    """Scheme, host and port of each request, as JMeter shows them."""

    def __init__(self, own: str, workload: Workload) -> None:
        """`own`: the load's own server."""
        self._own = _shown(own)
        self._named = {
            walk.name: [self._own if one.server is None else _shown(one.server) for one in walk.requests]
            for walk in workload.walks
        }

    def of(self, row: LoggedRequest) -> str:
        """The server that this request went to."""
        named = self._named.get(row.scenario, ())
        return named[row.step_index] if row.step_index < len(named) else self._own


def write(rows: Iterable[Sample], file: IO[str], servers: Servers, thread_names: ThreadNames) -> int:
    """One line per sample that ended; returns how many are requests."""
    lines = csv.writer(file, lineterminator="\n")
    count = 0
    for row in rows:
        if isinstance(row, Made):
            lines.writerow(made_fields(row, thread_names))
        else:
            lines.writerow(fields(row, servers.of(row), thread_names))
            count += 1
    return count


def fields(row: LoggedRequest, base: str, thread_names: ThreadNames) -> tuple[str | int, ...]:
    """In the order of the columns."""
    code, message, failure = _outcome(row)
    of_group, of_all = thread_names.at_work(row)
    return (
        samples.start_ms(row),
        samples.elapsed_ms(row),
        row.step,
        code,
        message,
        thread_names.name(row),
        "text",
        "true" if row.error is None else "false",
        failure,
        row.bytes_in,
        row.bytes_out,
        of_group,
        of_all,
        base + row.path,
        samples.latency_ms(row),
        0,
        samples.connect_ms(row),
    )


def made_fields(row: Made, thread_names: ThreadNames) -> tuple[str | int, ...]:
    """The same of a transaction, or of a sampler that sends nothing."""
    of_group, of_all = thread_names.at_work(row.of)
    success = "true" if row.success else "false"
    return (
        row.start_ms, row.elapsed_ms, row.label, row.code, row.message, thread_names.name(row.of), row.kind,
        success, "", row.bytes_in, row.bytes_out, of_group, of_all, "null", row.latency_ms, row.idle_ms,
        row.connect_ms,
    )  # fmt: skip


def _outcome(row: LoggedRequest) -> tuple[str, str, str]:
    """Code, message, and why a response that came was not taken for right."""
    if row.status is None:
        name, words = JAVA.get(row.error or "", (OTHER, row.error or "no response"))
        return f"Non HTTP response code: {name}", f"Non HTTP response message: {words}", ""
    phrase = responses.get(row.status, "")
    failure = ""
    if row.error is not None and not (row.error == "expect_status" and row.status >= 400):
        failure = f"Test failed: {row.error.replace('_', ' ')}"
    return str(row.status), phrase, failure


def _shown(base: str) -> str:
    """A usual port is not written."""
    parts = urlsplit(base)
    return base.rpartition(":")[0] if parts.port == PORTS.get(parts.scheme) else base
