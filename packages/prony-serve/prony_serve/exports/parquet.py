"""The CSV's table, typed. `above`: lower limit of a percentile among failed requests."""

from __future__ import annotations

import importlib.util
import io
from dataclasses import fields
from typing import Any

from prony.errors import EnvironmentFault
from prony.report import tidy
from prony.report.exports import Exported, Format
from prony.report.result import ResultView

NUMBERS = (*tidy.ESTIMATED, "above")


def write(view: ResultView) -> Exported:
    """One row group. Raises EnvironmentFault without pyarrow."""
    if importlib.util.find_spec("pyarrow") is None:
        raise EnvironmentFault("Parquet needs pyarrow, which is not installed: pip install 'prony[parquet]'")
    import pyarrow as arrow
    from pyarrow import parquet

    schema = arrow.schema(
        [
            *(
                (name, arrow.string())
                for name in ("experiment", "part", "cell", "server", "workload", "load")
            ),
            ("trial", arrow.string()),
            ("block", arrow.int32()),
            ("kind", arrow.string()),
            ("started", arrow.timestamp("us", tz="UTC")),
            ("conforms", arrow.bool_()),
            ("figure", arrow.string()),
            ("unit", arrow.string()),
            *((name, arrow.float64()) for name in NUMBERS),
        ],
        metadata={"prony.experiment": view.id, "prony.title": view.title},
    )
    table = arrow.Table.from_pylist([_plain(row) for row in tidy.rows(view)], schema=schema)
    file = io.BytesIO()
    parquet.write_table(table, file, compression="zstd")
    return Exported(file.getvalue())


def _plain(row: tidy.Row) -> dict[str, Any]:
    plain = {field.name: getattr(row, field.name) for field in fields(row) if field.name != "value"}
    value = row.value or tidy.Value(None)
    return plain | {name: getattr(value, name) for name in NUMBERS}


FORMAT = Format("Parquet, a row per trial and figure, typed", write, ".parquet", binary=True)
