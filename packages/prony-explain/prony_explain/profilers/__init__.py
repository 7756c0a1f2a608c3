"""A module per profiler: attach to a running process, sample it in slices of time."""
