"""Front ends by name, each loaded when it is asked for."""

from __future__ import annotations

import importlib

from prony.errors import UsageError
from prony.frontends.base import FrontEnd
from prony.frontends.names import SUMMARIES


def front_end(name: str) -> FrontEnd:
    """The front end of this name. Raises UsageError when there is none."""
    if name not in SUMMARIES:
        raise UsageError(f"'{name}' is no tool whose scripts Prony runs; expected {', '.join(SUMMARIES)}")
    found = importlib.import_module(f"prony.frontends.{name}").FRONT_END
    assert isinstance(found, FrontEnd)
    return found
