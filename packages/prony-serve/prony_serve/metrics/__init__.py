"""Prometheus metrics: text formats (exposition), a running measurement (live), the listener (endpoint)."""
