"""JMeter's sample logs as XML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from prony_frontends.jmeter.jtl import Record, RecordOf, opened
from prony_frontends.jmeter.listeners import RowsFile
from prony_frontends.jmeter.samples import DerivedSample, Sample, within

ATTRIBUTES = {
    "elapsed": "t", "IdleTime": "it", "Latency": "lt", "Connect": "ct", "timeStamp": "ts", "success": "s",
    "label": "lb", "responseCode": "rc", "responseMessage": "rm", "threadName": "tn", "dataType": "dt",
    "Encoding": "de", "bytes": "by", "sentBytes": "sby", "SampleCount": "sc", "ErrorCount": "ec",
    "grpThreads": "ng", "allThreads": "na", "Hostname": "hn",
}  # fmt: skip
"""Columns -> attributes, in order."""
END = "</testResults>"
TAIL_BYTES = 64
"""Bytes at the end of a file in which its closing tag is searched."""


class XmlLog:
    """A file of samples; samples of earlier runs are kept where the file is complete, as in JMeter."""

    def __init__(self, file: RowsFile, record_of: RecordOf) -> None:
        """`record_of`: columns of a sub-sample. Raises UsageError when the file cannot be written."""
        self._file = file
        self._record_of = record_of
        goes_on = _without_end(file.path)
        self._stream = opened(file.path, "a" if goes_on else "w")
        if not goes_on:
            self._stream.write('<?xml version="1.0" encoding="UTF-8"?>\n<testResults version="1.2">\n')

    def write(self, record: Record, sample: Sample) -> None:
        """Writes a sample with its sub-samples."""
        self._stream.write("\n".join(self._lines(record, sample, str(record["label"]))) + "\n")

    def close(self) -> None:
        """Completes the file."""
        self._stream.write(f"\n{END}\n")
        self._stream.close()

    def _lines(self, record: Record, sample: Sample, name: str, indent: str = "") -> Iterator[str]:
        tag = "sample" if isinstance(sample, DerivedSample) else "httpSample"
        attributes = "".join(
            f' {short}="{_written(record.get(column, ""))}"'
            for column, short in ATTRIBUTES.items()
            if column in self._file.columns
        )
        inside: list[str] = []
        for sub_sample in within(sample, name) if self._file.sub_samples else ():
            inside += self._lines(self._record_of(sub_sample), sub_sample, name, indent + "  ")
        if "URL" in self._file.columns and record["URL"] != "null":
            inside.append(f"{indent}  <java.net.URL>{_written(record['URL'])}</java.net.URL>")
        if not inside:
            yield f"{indent}<{tag}{attributes}/>"
            return
        yield f"{indent}<{tag}{attributes}>"
        yield from inside
        yield f"{indent}</{tag}>"


def _written(value: str | int) -> str:
    return escape(str(value), {'"': "&quot;", "'": "&apos;"})


def _without_end(path: Path) -> bool:
    """Whether the file exists and is complete; removes its closing tag."""
    try:
        with path.open("r+b") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            tail = file.read()
            at = tail.rfind(END.encode())
            if at >= 0:
                file.truncate(size - len(tail) + at)
            return at >= 0
    except OSError:
        return False
