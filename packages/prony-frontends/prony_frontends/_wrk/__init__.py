"""What wrk and wrk2 have in common: their command line, the load, their report. No tool of its own."""
