"""Measurements over several hosts with Dask; the only package with distributed and asyncssh."""
