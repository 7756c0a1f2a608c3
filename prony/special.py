"""SciPy's special functions, imported when the first is used: a load of one server needs none of them."""

from __future__ import annotations

from typing import Any


class _Special:
    def __getattr__(self, name: str) -> Any:
        from scipy import special

        return getattr(special, name)


special: Any = _Special()
