"""Injected faults: set-ups that mislead ordinary tools, each with a clean run."""
