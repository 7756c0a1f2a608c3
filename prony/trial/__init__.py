"""One trial: a server under test, warmed up until steady, measured, stopped.

Must not know what kind of target it is, what its figures mean or who reads them.
"""
