"""The result in an export file, read without keeping it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from prony.report.reading import load_result
from prony.report.result import ResultView
from prony.store import Store, transfer


def load_exported(file: Path) -> ResultView:
    """Raises UsageError for a file that is no export."""
    with tempfile.TemporaryDirectory(prefix="prony-export-") as folder:
        store = Store.open(Path(folder) / "results.db")
        try:
            identifier, _ = transfer.read(store, file)
            return load_result(store, identifier)
        finally:
            store.close()
