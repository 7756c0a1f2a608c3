"""Student's t, importing SciPy (0.25 s) on first use."""

from __future__ import annotations

from typing import Any


def t_quantile(freedom: float, probability: float) -> float:
    """Quantile of Student's t with this many degrees of freedom."""
    from scipy import special as untyped_special

    special: Any = untyped_special
    return float(special.stdtrit(freedom, probability))
