"""The terminal of every command: a server's words, printed there, give it no orders (escape sequences)."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from prony.report.wording import printable


class Console(RichConsole):
    """Rich's, with printable text only; its own colours and cursor movements are no text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does it, each piece made printable."""
        for piece in super().render(renderable, options):
            text = piece.text if piece.control else printable(piece.text)
            yield piece if text == piece.text else Segment(text, piece.style)
