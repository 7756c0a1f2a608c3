"""The files that `prony gate` leaves for a build server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli import options
from prony.errors import PronyError, UsageError

if TYPE_CHECKING:
    from prony.report.result import ResultView


@dataclass(frozen=True, slots=True)
class GateFiles:
    """Where to write what; None: not asked for."""

    junit: Path | None = None
    markdown: Path | None = None

    @property
    def drawing(self) -> Path | None:
        """The SVG that the Markdown shows, beside it."""
        return None if self.markdown is None else self.markdown.with_suffix(".svg")

    def check(self) -> None:
        """Raises UsageError when one could not be written, before any time is spent on measuring."""
        for option, file in (("--junit", self.junit), ("--markdown", self.markdown)):
            if file is not None:
                options.writable(file, option)
        if self.drawing is not None and self.drawing == self.markdown:
            raise UsageError(
                f"--markdown names {self.markdown}, where its drawing goes; name a file such as gate.md"
            )
        if self.drawing is not None:
            options.writable(self.drawing, "--markdown")

    def write(self, view: ResultView) -> None:
        """All of them."""
        from prony.report import gate_files
        from prony.report.html import write_text

        if self.junit is not None:
            write_text(gate_files.junit(view), self.junit)
        gate = gate_files.gate_of(view)
        if self.markdown is None or self.drawing is None or gate is None:
            return
        write_text(gate_files.svg(gate), self.drawing)
        write_text(gate_files.markdown(view, self.drawing.name), self.markdown)

    @contextmanager
    def told_of_faults(self) -> Iterator[None]:
        """What ends the command before there is a result stands in the files, too: a build server that finds
        none says only that.
        """
        try:
            yield
        except PronyError as fault:
            from prony.report import gate_files
            from prony.report.html import write_text

            if self.junit is not None:
                write_text(gate_files.junit_fault(str(fault)), self.junit)
            if self.markdown is not None:
                write_text(gate_files.markdown_fault(str(fault)), self.markdown)
            raise
