"""CPU time per request of load generators: Prony and others, interleaved. Entry point: `python -m bench`."""
