"""One trial: a fresh server process, warmed up until steady, measured, stopped.

Must not know what its figures mean or who reads them.
"""
