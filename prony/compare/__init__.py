"""Statistics over trials: arrays in, frozen values out. Must not know evidence, servers or reports.

The sample is the trial (a fresh process). Start at `compare`.
"""

from prony.compare.comparison import BAND, Comparison, Pair, compare
from prony.compare.ratio import RatioResult, Verdict, ratio
from prony.compare.samples import Sample, ServerValues
from prony.compare.sequential import Looks
from prony.compare.summary import Summary, summary

__all__ = [
    "BAND",
    "Comparison",
    "Looks",
    "Pair",
    "RatioResult",
    "Sample",
    "ServerValues",
    "Summary",
    "Verdict",
    "compare",
    "ratio",
    "summary",
]
