"""The `prony` command. Heavy libraries are imported inside the commands that need them."""

import gc

gc.set_threshold(200_000)
"""Objects. At Python's 700 a command of a second spends a tenth of it on what it made and still needs."""
