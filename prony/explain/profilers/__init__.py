"""One module for each profiler: attach to a running process, cut its samples into slices of time.

Must not know the trial, the load, or to which part of a server a frame belongs.
"""
