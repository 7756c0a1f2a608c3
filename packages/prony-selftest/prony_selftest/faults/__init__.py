"""The catalogue of injected faults: set-ups whose figures from ordinary tools are wrong or misleading, each
with a clean run.
"""
