"""From evidence to findings, verdict and figures. Pure functions; must not know processes, files or how
results are shown."""
