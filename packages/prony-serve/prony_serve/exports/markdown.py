"""The main figures as Markdown, for a text about them. Pure."""

from __future__ import annotations

from prony.report.exports import Exported, Format
from prony.report.result import ResultView
from prony_serve.publish.figures import text


def write(view: ResultView) -> Exported:
    return Exported(text(view))


FORMAT = Format("main figures, pairs and reasons as Markdown", write, ".md")
