"""The limits of all checks as one value, put together from what each check declares.

A plan may set any of them; the limit that was in force is printed with the finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import create_model

from prony.judge.check import DeclaredLimits
from prony.judge.checks import CHECKS

if TYPE_CHECKING:
    CheckLimits = DeclaredLimits
else:
    declared = {check.limits for check in CHECKS}
    # A base of another one is in it already, and may not stand before it.
    bases = [one for one in declared if not any(issubclass(other, one) for other in declared - {one})]
    CheckLimits = create_model("CheckLimits", __base__=tuple(sorted(bases, key=lambda one: one.__name__)))
