"""Does a server answer as its workloads declare? A series of checks against a fresh process."""
