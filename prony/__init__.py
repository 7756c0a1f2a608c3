"""Prony measures web servers under load and prints a number only with the evidence that it is true."""

__version__ = "0.1.0"
