"""The `prony` command. Heavy libraries are imported inside the commands that need them."""
