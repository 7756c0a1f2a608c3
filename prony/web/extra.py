"""The extra `prony[serve]`: one clear sentence where it is not installed."""

from __future__ import annotations

import importlib.util

from prony.errors import EnvironmentFault

NEEDED = ("starlette", "uvicorn")


def require() -> None:
    """Raises EnvironmentFault where Starlette or uvicorn is missing."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise EnvironmentFault(
            f"prony serve needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not "
            "installed; install them: pip install 'prony[serve]'"
        )
