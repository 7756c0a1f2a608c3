"""What to run: workloads, loads and experiments as values, and reading them from YAML."""
