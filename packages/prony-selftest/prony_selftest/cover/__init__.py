"""Worlds of which the truth is known: does what is printed hold it?"""
