"""The limits of all checks as one model. A plan may set any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import create_model

from prony.judge.check import DeclaredLimits
from prony.judge.checks import CHECKS

if TYPE_CHECKING:
    CheckLimits = DeclaredLimits
else:
    declared = {check.limits for check in CHECKS}
    # The bases of another class are inherited already, and may not precede it in the MRO.
    bases = [one for one in declared if not any(issubclass(other, one) for other in declared - {one})]
    CheckLimits = create_model("CheckLimits", __base__=tuple(sorted(bases, key=lambda one: one.__name__)))
