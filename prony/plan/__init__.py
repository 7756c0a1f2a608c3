"""Workloads, loads and experiments as values, and their YAML files."""
