"""Measurements over several hosts with Dask.distributed. The only package that imports distributed and
asyncssh; loaded with `--hosts` only.
"""
