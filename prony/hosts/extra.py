"""The extra `prony[hosts]`: one clear sentence where it is not installed."""

from __future__ import annotations

import importlib.util

from prony.errors import EnvironmentFault

NEEDED = ("distributed", "asyncssh", "cryptography")


def require() -> None:
    """Raises EnvironmentFault where Dask or asyncssh is missing."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise EnvironmentFault(
            f"several hosts need {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not "
            "installed; install them: pip install 'prony[hosts]'"
        )
