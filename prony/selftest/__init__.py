"""The instrument tested on itself: what it says where the truth is known. Only commands import this."""
