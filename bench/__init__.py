"""What a request costs the load generator: Prony side by side with others. Must not know how any of them
works inside, and believes none of them: CPU time comes from the kernel, requests are counted by the server.

`python -m bench` is the way in.
"""
