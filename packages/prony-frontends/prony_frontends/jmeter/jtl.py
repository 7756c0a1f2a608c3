"""Writes JMeter's sample logs (JTL) from the engine's request log; here as CSV."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from http.client import responses
from pathlib import Path
from typing import IO, Protocol
from urllib.parse import urlsplit

from prony.errors import UsageError
from prony.plan.workload import Workload
from prony.report.exports.csv import line
from prony_frontends.jmeter import chains, samples
from prony_frontends.jmeter.chains import Chain
from prony_frontends.jmeter.listeners import RowsFile
from prony_frontends.jmeter.outline import Outline
from prony_frontends.jmeter.places import PORTS
from prony_frontends.jmeter.samples import DerivedSample, Sample
from prony_frontends.jmeter.thread_names import ThreadNames
from prony_frontends.request_log import LoggedRequest

HOSTNAME = socket.gethostname()
Record = dict[str, str | int]
"""A row by column name."""
RecordOf = Callable[[LoggedRequest], Record]
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
"""The engine's kinds of errors -> JMeter's exception and message."""
OTHER = "org.apache.http.client.ClientProtocolException"


class Log(Protocol):
    """An open file of rows."""

    def write(self, record: Record, sample: Sample, /) -> None:
        """One row."""

    def close(self) -> None:
        """Completes the file."""


class CsvLog:
    """A CSV file; rows are appended to an existing file, as in JMeter."""

    def __init__(self, file: RowsFile, record_of: RecordOf, replace: bool = False) -> None:
        """`record_of`: columns of a sub-sample. Raises UsageError when the file cannot be written."""
        self._file = file
        self._record_of = record_of
        self._stream = opened(file.path, "w" if replace else "a")
        if file.titles and self._stream.tell() == 0:
            self._stream.write(line(file.columns))

    def write(self, record: Record, sample: Sample) -> None:
        """Writes a sample's row, and rows of its sub-samples."""
        self._write(record, sample, str(record["label"]))

    def _write(self, record: Record, sample: Sample, name: str) -> None:
        self._stream.write(line(record.get(column, "") for column in self._file.columns))
        for sub_sample in samples.within(sample, name) if self._file.sub_samples else ():
            self._write(self._record_of(sub_sample), sub_sample, name)

    def close(self) -> None:
        """Completes the file."""
        self._stream.close()


def opened(path: Path, mode: str) -> IO[str]:
    """Opens a file of rows; creates its folder. Raises UsageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open(mode, newline="", encoding="utf-8")
    except OSError as fault:
        raise UsageError(f"-l {path}: {fault.strerror or fault}; use an existing folder") from fault


class Servers:
    """Scheme, host and port of each request, as JMeter prints them."""

    def __init__(self, own: str, workload: Workload) -> None:
        """`own`: the load's own server."""
        self._own = _shown(own)
        self._named = {
            walk.name: [
                self._own if request.server is None else _shown(request.server) for request in walk.requests
            ]
            for walk in workload.walks
        }

    def of(self, row: LoggedRequest) -> str:
        """The server of this request."""
        named = self._named.get(row.scenario, ())
        return named[row.step_index] if row.step_index < len(named) else self._own


def write(
    rows: Iterable[Sample],
    logs: Sequence[tuple[RowsFile, Log]],
    servers: Servers,
    thread_names: ThreadNames,
    outlined: Mapping[str, Outline],
) -> int:
    """Writes each finished sample to the logs that want it; returns the number of requests."""
    count = 0
    for row in rows:
        if isinstance(row, DerivedSample):
            record = derived_record(row, thread_names)
            of, element = row.of, row.element
        else:
            record = request_record(row, servers.of(row), thread_names)
            of, element = row, _element(row, outlined)
            count += row.requests if isinstance(row, Chain) else 1
        key = (thread_names.group(of), element, record["success"] == "true")
        for file, log in logs:
            if any(key in wanted for wanted in file.wanted):
                log.write(record, row)
    return count


def _element(row: LoggedRequest, outlined: Mapping[str, Outline]) -> int:
    """Number of its sampler."""
    outline = outlined.get(row.scenario)
    places = [] if outline is None else outline.requests
    return places[row.step_index].element if row.step_index < len(places) else 0


def request_record(row: LoggedRequest, base: str, thread_names: ThreadNames) -> Record:
    """A request's columns. `base`: scheme, host and port."""
    code, message, failure = _outcome(row, base)
    of_group, of_all = thread_names.at_work(row)
    failed = row.error is not None
    return {
        "timeStamp": chains.start_ms(row), "elapsed": chains.elapsed_ms(row), "label": row.step,
        "responseCode": code, "responseMessage": message, "threadName": thread_names.name(row),
        "dataType": "text", "success": "false" if failed else "true", "failureMessage": failure,
        "bytes": row.bytes_in, "sentBytes": row.bytes_out, "grpThreads": of_group, "allThreads": of_all,
        "URL": base + row.path, "Latency": chains.latency_ms(row), "IdleTime": 0,
        "Connect": chains.connect_ms(row), "SampleCount": 1, "ErrorCount": int(failed),
        "Hostname": HOSTNAME,
    }  # fmt: skip


def derived_record(row: DerivedSample, thread_names: ThreadNames) -> Record:
    """Columns of a transaction, or of a sampler that sends nothing."""
    of_group, of_all = thread_names.at_work(row.of)
    return {
        "timeStamp": row.start_ms, "elapsed": row.elapsed_ms, "label": row.label, "responseCode": _code(row),
        "responseMessage": row.message, "threadName": thread_names.name(row.of), "dataType": row.kind,
        "success": "true" if row.success else "false", "failureMessage": "", "bytes": row.bytes_in,
        "sentBytes": row.bytes_out, "grpThreads": of_group, "allThreads": of_all, "URL": row.url,
        "Latency": row.latency_ms, "IdleTime": row.idle_ms, "Connect": row.connect_ms, "SampleCount": 1,
        "ErrorCount": int(not row.success), "Hostname": HOSTNAME,
    }  # fmt: skip


def _code(sample: Sample) -> str:
    """Of a parent, that of its first failed sample."""
    if not isinstance(sample, DerivedSample):
        return _outcome(sample, "")[0]
    return sample.code if sample.failed is None else _code(sample.failed)


def _chain_outcome(chain: Chain, base: str) -> tuple[str, str, str]:
    """The outcome of the last response, or of a failed embedded resource."""
    code, message, failure = _outcome(chain.last, base)
    bad = [embedded for embedded in chain.embedded if embedded.error is not None]
    unavailable = [
        embedded
        for embedded in bad
        if isinstance(embedded, Chain) or embedded.status is None or embedded.status >= 400
    ]
    if unavailable:
        failures = ((base + embedded.path, *_outcome(embedded, base)) for embedded in unavailable)
        message = "Embedded resource download error:" + "".join(
            f"{url} code:{code} message:{message}, " for url, code, message, _ in failures
        )
    if bad and chain.last.error is None and not unavailable:
        failure = "One or more sub-samples failed"
    return code, message, failure


def _outcome(row: LoggedRequest, base: str) -> tuple[str, str, str]:
    """Code, message, and failure message of a rejected response."""
    if isinstance(row, Chain):
        return _chain_outcome(row, base)
    if row.status is None:
        name, words = JAVA.get(row.error or "", (OTHER, row.error or "no response"))
        return f"Non HTTP response code: {name}", f"Non HTTP response message: {words}", ""
    phrase = responses.get(row.status, "")
    failure = ""
    if row.error is not None and not (row.error == "expect_status" and row.status >= 400):
        failure = f"Test failed: {row.error.replace('_', ' ')}"
    return str(row.status), phrase, failure


def _shown(base: str) -> str:
    """Without a default port."""
    parts = urlsplit(base)
    return base.rpartition(":")[0] if parts.port == PORTS.get(parts.scheme) else base
