"""The self-test: Prony's reports compared with a known truth. Imported by commands only."""
