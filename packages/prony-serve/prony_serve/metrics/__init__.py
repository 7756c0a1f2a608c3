"""Figures in Prometheus's formats: the text itself (exposition), what a running measurement tells (live), and
the listener that serves it (endpoint).
"""
