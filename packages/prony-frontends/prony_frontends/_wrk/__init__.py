"""Shared by wrk and wrk2: command line, load and report."""
