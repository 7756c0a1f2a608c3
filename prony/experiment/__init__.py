"""Runs a whole experiment: builds, trials in order, each judged and stored the moment it ends."""
