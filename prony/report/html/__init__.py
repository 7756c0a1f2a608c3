"""The report as one self-contained page. What draws charts is imported only when a page is written."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from prony.errors import EnvironmentFault
from prony.report.model import ExperimentView


def render_html(view: ExperimentView) -> str:
    """The page as text."""
    from prony.report.html.page import render_html as render

    return render(view)


def write_html(view: ExperimentView, path: Path) -> None:
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
    if not os.access(folder, os.W_OK):
        raise EnvironmentFault(f"no permission to write a report into {folder}; name another file")


def write_text(text: str, path: Path) -> None:
    """Replace the file in one step: a reader sees the old page or the new one."""
    temporary: str | None = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = file.name
            file.write(text)
        Path(temporary).chmod(0o644 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()
        raise EnvironmentFault(
            f"the report could not be written to {path}: {error.strerror or error}"
        ) from error


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
