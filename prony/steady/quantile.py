"""Student's t. SciPy is imported when it is first asked for: a quarter of a second, for which a command that
judges nothing need not wait.
"""

from __future__ import annotations

from typing import Any


def t_quantile(freedom: float, probability: float) -> float:
    """The value that Student's t with this many degrees of freedom stays below with this probability."""
    from scipy import special as untyped_special

    special: Any = untyped_special
    return float(special.stdtrit(freedom, probability))
