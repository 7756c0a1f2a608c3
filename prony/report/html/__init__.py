"""The report as a self-contained page. Jinja and what draws are imported only when a page is written."""

from __future__ import annotations

import os
from pathlib import Path

from prony.errors import EnvironmentFault
from prony.files import whole
from prony.report.result import ResultView


def render_html(view: ResultView) -> str:
    from prony.report.html.page import render_html as render

    return render(view)


def write_html(view: ResultView, path: Path) -> None:
    """Write the page to `path`: wholly or not at all. Raises EnvironmentFault when it cannot be written."""
    check_writable(path)
    write_text(render_html(view), path)


def check_writable(path: Path) -> None:
    """Raises EnvironmentFault when a report cannot be written to `path`: ask before hours of measuring."""
    folder = path.parent
    if path.is_dir():
        raise EnvironmentFault(f"{path} is a folder; name the file that the report should be written to")
    if not folder.is_dir():
        raise EnvironmentFault(
            f"the folder {folder} for the report does not exist; make it or name another file"
        )
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise EnvironmentFault(f"no permission to write a report to {path}; name another file")


def write_text(text: str, path: Path) -> None:
    try:
        with whole(path) as file:
            file.write(text.encode(errors="replace"))
    except OSError as error:
        why = error.strerror or error
        raise EnvironmentFault(
            f"the report could not be written to {path}: {why}; name another file"
        ) from error
