"""The catalogue of lies: set-ups in which ordinary tools print a confident number that is wrong or means
something else, each with an honest twin.
"""
