"""Steady-state detection: pure functions on interval rows, used during the warm-up and again by the judge."""
