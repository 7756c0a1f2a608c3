"""Steady-state detection on interval rows, for the warm-up and for the judge."""
