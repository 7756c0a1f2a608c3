"""One module for each profiler: attach to a running process, cut its samples into slices of time."""
