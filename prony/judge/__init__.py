"""From evidence to findings, verdict and figures: pure functions. Must not know processes, files
or reports.
"""
