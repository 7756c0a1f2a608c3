"""Statistics over trials. The sample is the trial (a fresh process). Start at `compare`."""

from prony.compare.claim import BAND, MARGINS, Claim, Margins, Settles
from prony.compare.comparison import Comparison, Later, Pair, compare
from prony.compare.ratio import RatioResult, ratio
from prony.compare.samples import Sample, ServerValues
from prony.compare.sequential import Looks
from prony.compare.summary import Summary, summary

__all__ = [
    "BAND",
    "MARGINS",
    "Claim",
    "Comparison",
    "Later",
    "Looks",
    "Margins",
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
