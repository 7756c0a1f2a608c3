"""The catalogue of injected faults: set-ups in which ordinary tools print a confident number that is wrong or
means something else, each with a clean run beside it.
"""
