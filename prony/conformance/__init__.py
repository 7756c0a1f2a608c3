"""Does a server answer as its workloads declare? One check after the other against a fresh process.

Must not measure: nothing that it finds is a figure.
"""
