"""Several hosts: the way to them by Dask.distributed, and what runs there. The only package that imports
distributed and asyncssh; without `--hosts` nothing here is imported.
"""
