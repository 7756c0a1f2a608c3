"""The kernel's share of the CPU time, as a second profiler saw it, put into the profile of one that does not
see it. Pure functions.

A profiler of a language sees that a function was called which makes a system call, or that something native
ran, and counts the time of both sides there. The samples of those calls make room for as many samples of the
kernel as the second profiler has; what is left of them was spent outside the kernel. The number of samples
of a slice stays what it was.
"""

from __future__ import annotations

from collections.abc import Mapping

from prony.evidence.profile import KERNEL_FRAME, Profile, Samples, Sampling, Stack, sampling
from prony_explain.rules import Part, Rules

IN_KERNEL = frozenset({Part.NETWORK, Part.SCHEDULING, Part.KERNEL})
OUTSIDE = "[outside the kernel]"
"""The frame of what is left of a call that makes a system call."""


def cpu_samples(profile: Profile, rules: Rules) -> Sampling | None:
    """The CPU samples of a profile, with the kernel's where a second profiler took them."""
    if profile.cpu is None or profile.kernel is None:
        return profile.cpu
    return with_kernel(profile.cpu, profile.kernel, rules)


def with_kernel(cpu: Sampling, kernel: Sampling, rules: Rules) -> Sampling:
    """`cpu` with the kernel's stacks of `kernel` in each slice; one of which `kernel` has nothing stays."""
    stacks, places = list(cpu.every_stack()), rules.places(cpu)
    made: list[tuple[float, float, Mapping[Stack, int]]] = []
    for piece in cpu.slices:
        beside = _during(kernel, piece)
        if not beside:
            made.append((piece.start_s, piece.end_s, {stacks[n]: w for n, w in piece.weights.items()}))
            continue
        inside = _inside(beside)
        calls: dict[Stack, int] = {}
        rest: dict[Stack, int] = {}
        left_out: dict[Stack, int] = {}
        for node, weight in piece.weights.items():
            part_of, stack = places[node].part, stacks[node]
            # By the function itself: what waits for a lock may be called by what holds all below it.
            call = rules.place(stack[-1:]).part in IN_KERNEL
            if part_of is Part.PROFILER:
                left_out[stack] = weight
                continue
            stack = (*stack, OUTSIDE) if call else stack
            if call or part_of is Part.UNATTRIBUTED:
                calls[stack] = calls.get(stack, 0) + weight
            else:
                rest[stack] = weight
        total = sum(calls.values()) + sum(rest.values())
        wanted = round(total * sum(inside.values()) / sum(beside.values()))
        room = sum(calls.values()) - wanted
        if room >= 0:
            calls = scaled(calls, room)
        else:
            calls, rest = {}, scaled(rest, total - wanted)
        made.append((piece.start_s, piece.end_s, scaled(inside, wanted) | calls | rest | left_out))
    return sampling(cpu.unit, made)


def scaled(stacks: Mapping[Stack, int], total: int) -> dict[Stack, int]:
    """The same stacks with so many samples in all, taken evenly from the old ones (systematic sampling)."""
    whole = sum(stacks.values())
    found: dict[Stack, int] = {}
    before = taken = 0
    for stack, weight in stacks.items():
        before += weight
        until = (2 * before * total + whole) // (2 * whole)
        if until > taken:
            found[stack] = until - taken
        taken = until
    return found


def _during(kernel: Sampling, piece: Samples) -> dict[Stack, int]:
    """The stacks of the second profiler's slices whose middle lies in this one."""
    found: dict[Stack, int] = {}
    for other in kernel.slices:
        if piece.start_s <= (other.start_s + other.end_s) / 2 < piece.end_s:
            for stack, weight in kernel.stacks(other).items():
                found[stack] = found.get(stack, 0) + weight
    return found


def _inside(stacks: Mapping[Stack, int]) -> dict[Stack, int]:
    """Those that end in the kernel, as their frames there."""
    found: dict[Stack, int] = {}
    for stack, weight in stacks.items():
        inside = tuple(frame for frame in stack if frame.endswith(KERNEL_FRAME))
        if inside:
            found[inside] = found.get(inside, 0) + weight
    return found
