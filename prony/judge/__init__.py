"""From evidence to findings, a judgement and figures: pure functions. Must not know processes, files
or reports.
"""
