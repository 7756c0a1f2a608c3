"""The `prony` command: one file per sub-command. Heavy libraries are imported inside the commands that need
them.
"""
