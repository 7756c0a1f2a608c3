"""Is it level yet? Pure functions on the engine's rows, asked while a trial warms up and again by the judge.

Must not know trials, findings or verdicts.
"""
