"""The self-test: what Prony reports where the truth is known. Only commands import this."""
