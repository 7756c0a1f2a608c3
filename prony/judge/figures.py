"""The figures of one trial, derived from its evidence alone. Must not know whether they may be printed: that is the verdict's.

Every name carries its unit. A figure whose counters are missing is absent, never zero.
"""
