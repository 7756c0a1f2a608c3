"""What a request costs the load generator: Prony side by side with others.

`python -m bench` is the way in.
"""
