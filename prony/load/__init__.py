"""Drives the engine."""
