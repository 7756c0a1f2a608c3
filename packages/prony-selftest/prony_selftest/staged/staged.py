"""Requests of known cost, as Staged.java: `staged.py burn_us=80 calls=0 hand=0`. Twice a second it prints:
requests, CPU ns of the process, CPU ns of burn() by its thread's own clock.
"""

import os
import queue
import sys
import threading
import time

counts = {"requests": 0, "burned": 0}


def burn(rounds: int) -> int:
    value = 1
    for _ in range(rounds):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    return value


def serve(burn_us: int, calls: int, hand: int) -> None:
    begun = time.thread_time_ns()
    burn(100_000)
    rounds = int(burn_us * 1000 * 100_000 / (time.thread_time_ns() - begun))
    null = os.open("/dev/null", os.O_WRONLY)
    work: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[int] = queue.SimpleQueue()

    def other() -> None:
        while True:
            done.put(work.get())

    threading.Thread(target=other, daemon=True).start()
    while True:
        begun = time.thread_time_ns()
        burn(rounds)
        counts["burned"] += time.thread_time_ns() - begun
        for _ in range(calls):
            os.write(null, b"x")
        for _ in range(hand):
            work.put(1)
            done.get()
        counts["requests"] += 1


if __name__ == "__main__":
    options = dict.fromkeys(("burn_us", "calls", "hand"), 0)
    options |= {name: int(value) for name, _, value in (word.partition("=") for word in sys.argv[1:])}
    threading.Thread(target=serve, kwargs=options, daemon=True).start()
    while True:
        time.sleep(0.5)
        print(counts["requests"], time.process_time_ns(), counts["burned"], flush=True)
