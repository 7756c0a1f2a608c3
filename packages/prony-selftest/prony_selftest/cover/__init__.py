"""Simulated worlds with a known truth: coverage of the printed bounds."""
