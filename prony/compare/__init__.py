"""Statistics over trials: arrays in, frozen values out.

The sample is the trial (a fresh process). Start at `compare`.
"""

from prony.compare.claim import AT_LEAST, Claim, Settles
from prony.compare.comparison import BAND, Comparison, Later, Pair, compare
from prony.compare.ratio import RatioResult, ratio
from prony.compare.samples import Sample, ServerValues
from prony.compare.sequential import Looks
from prony.compare.summary import Summary, summary

__all__ = [
    "AT_LEAST",
    "BAND",
    "Claim",
    "Comparison",
    "Later",
    "Looks",
    "Pair",
    "RatioResult",
    "Sample",
    "ServerValues",
    "Settles",
    "Summary",
    "compare",
    "ratio",
    "summary",
]
