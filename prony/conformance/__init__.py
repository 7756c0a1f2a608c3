"""Does a server answer as its workloads declare? A series of checks against a fresh process.

Must not measure: nothing that it finds is a figure.
"""
