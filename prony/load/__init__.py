"""Drives the engine. Must not judge its figures."""
