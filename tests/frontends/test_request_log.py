"""The request log as the engine writes it and as the laboratory reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import EnvironmentFault
from prony_frontends.request_log import COLUMNS, read_log


def test_a_file_that_is_no_request_log_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(EnvironmentFault, match="expected the header of a request log"):
        list(read_log(file))


def test_a_row_that_broke_off_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cut.csv"
    file.write_text(",".join(COLUMNS) + "\n17,3\n")
    with pytest.raises(EnvironmentFault, match="line 2"):
        list(read_log(file))
