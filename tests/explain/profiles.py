"""Profiles for tests: a recorded one of a real server, and staged ones of which the truth is known."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from prony.evidence.profile import Counters, Profile, Sampling, Stack, TimelineEvent
from prony_explain.sampling import sampling

DATA = Path(__file__).parent / "data"
SERVERS = Path(__file__).resolve().parents[2] / "servers"


def recorded(slices: int = 8, *, seed: int = 1) -> Sampling:
    """Spring Boot on Tomcat under load, by async-profiler 4.2 on Linux 6 with kernel frames: a sample of its
    stacks, dealt into slices.
    """
    draw = np.random.default_rng(seed)
    made: list[dict[Stack, int]] = [{} for _ in range(slices)]
    with gzip.open(DATA / "spring-tomcat.collapsed.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            stack, _, count = line.rstrip("\n").rpartition(" ")
            frames = tuple(stack.split(";"))
            for at in draw.integers(0, slices, int(count)):
                made[at][frames] = made[at].get(frames, 0) + 1
    return sampling("samples", [(at, at + 1.0, one) for at, one in enumerate(made)])


THREAD = "[worker-1 tid=7]"
STAGED: Mapping[str, Stack] = {
    "application": (
        THREAD,
        "java/lang/Thread.run_[0]",
        "org/apache/tomcat/Pool.run_[j]",
        "shop/Burn.spin_[j]",
    ),
    "framework": (
        THREAD,
        "org/apache/tomcat/Pool.run_[j]",
        "org/springframework/web/Mvc.go_[j]",
        "java/util/HashMap.get_[i]",
    ),
    "container": (THREAD, "java/lang/Thread.run_[0]", "org/apache/tomcat/Pool.run_[j]"),
    "kernel network": (
        THREAD,
        "org/apache/tomcat/Pool.run_[j]",
        "libc.so.6`write",
        "do_syscall_64_[k]",
        "tcp_sendmsg_[k]",
        "memcpy_[k]",
    ),
    "kernel scheduling and locks": (
        THREAD,
        "shop/Hand.over_[j]",
        "libjvm.so`Unsafe_Unpark",
        "__x64_sys_futex_[k]",
        "native_x_[k]",
    ),
    "runtime": ("[G1 Conc#0 tid=9]", "libjvm.so`thread_native_entry", "libc.so.6`__memmove_avx"),
}
"""One stack for each of six parts."""


def staged(
    shares: Mapping[str, float], *, samples: int = 1000, slices: int = 10, spread: float = 0.0, seed: int = 0
) -> Sampling:
    """Samples of a server whose true shares are known. `spread`: standard deviation of the log of a
    part's share from slice to slice.
    """
    draw = np.random.default_rng(seed)
    names = list(shares)
    made: list[tuple[float, float, Mapping[Stack, int]]] = []
    for at in range(slices):
        wanted = np.asarray([shares[name] for name in names]) * np.exp(draw.normal(0, spread, len(names)))
        counts = draw.multinomial(samples // slices, wanted / wanted.sum())
        made.append((at, at + 1.0, {STAGED[n]: int(c) for n, c in zip(names, counts, strict=True) if c}))
    return sampling("samples", made)


def profile(cpu: Sampling | None, **changes: object) -> Profile:
    """A profile with these samples, counters and a few events."""
    values: dict[str, object] = {
        "runtime": "jvm",
        "profiler": "async-profiler 4.2",
        "event": "cpu",
        "started_s": 0.0,
        "ended_s": 10.0,
        "cpu": cpu,
        "counters": Counters(
            seconds=10.0,
            switches_voluntary=150_000,
            system_calls={"read": 1500, "write": 1500},
            system_calls_s=0.1,
            allocated_bytes=150_000_000,
            run_queue_wait_s=0.5,
            collections=4,
            collection_pause_s=0.03,
        ),
        "timeline": (
            TimelineEvent(kind="collection", start_s=1.5, duration_s=0.004),
            TimelineEvent(kind="compilation", start_s=2.0, duration_s=0.0),
        ),
    } | changes
    return Profile.model_validate(values)


def costs(mean_us: float, trials: int, *, error: float = 0.02, seed: int = 0) -> Sequence[float]:
    """Measured costs of trials around a mean."""
    return [float(one) for one in np.random.default_rng(seed).normal(mean_us, mean_us * error, trials)]
