"""Adds the kernel's CPU samples of a second profiler to a profile that does not see the kernel. Pure.

A language's profiler counts the time of both sides at the function that makes a system call, or as native
code. Samples of those calls are replaced by the second profiler's kernel samples; the rest was spent outside
the kernel. The number of samples per slice stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from prony.evidence.profile import Profile, Samples, Sampling, Stack
from prony_explain.rules import Part, Rules
from prony_explain.sampling import KERNEL_FRAME, sampling

IN_KERNEL = frozenset({Part.NETWORK, Part.SCHEDULING, Part.KERNEL})
OUTSIDE = "[outside the kernel]"
"""Frame of the rest of a call that makes a system call."""


def cpu_samples(profile: Profile, rules: Rules) -> Sampling | None:
    """The CPU samples, with the kernel's if a second profiler took them."""
    if profile.cpu is None or profile.kernel is None:
        return profile.cpu
    return with_kernel(profile.cpu, profile.kernel, rules)


def with_kernel(cpu: Sampling, kernel: Sampling, rules: Rules) -> Sampling:
    """`cpu` with the kernel stacks of `kernel` in each slice; slices that `kernel` lacks stay unchanged."""
    stacks, places = list(cpu.every_stack()), rules.places(cpu)
    slices: list[tuple[float, float, Mapping[Stack, int]]] = []
    for piece in cpu.slices:
        sampled = _during(kernel, piece)
        if not sampled:
            slices.append((piece.start_s, piece.end_s, {stacks[n]: w for n, w in piece.weights.items()}))
            continue
        inside = _inside(sampled)
        calls: dict[Stack, int] = {}
        rest: dict[Stack, int] = {}
        left_out: dict[Stack, int] = {}
        for node, weight in piece.weights.items():
            part_of, stack = places[node].part, stacks[node]
            # By the innermost function: a caller with `holds` may cover a wait for a lock.
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
        wanted = round(total * sum(inside.values()) / sum(sampled.values()))
        room = sum(calls.values()) - wanted
        if room >= 0:
            calls = scaled(calls, room)
        else:
            calls, rest = {}, scaled(rest, total - wanted)
        slices.append((piece.start_s, piece.end_s, scaled(inside, wanted) | calls | rest | left_out))
    return sampling(cpu.unit, slices)


def scaled(stacks: Mapping[Stack, int], total: int) -> dict[Stack, int]:
    """The stacks scaled to `total` samples by systematic sampling."""
    whole = sum(stacks.values())
    chosen: dict[Stack, int] = {}
    before = taken = 0
    for stack, weight in stacks.items():
        before += weight
        until = (2 * before * total + whole) // (2 * whole)
        if until > taken:
            chosen[stack] = until - taken
        taken = until
    return chosen


def _during(kernel: Sampling, piece: Samples) -> dict[Stack, int]:
    """Stacks of the second profiler's slices whose middle lies in this slice."""
    stacks: dict[Stack, int] = {}
    for other in kernel.slices:
        if piece.start_s <= (other.start_s + other.end_s) / 2 < piece.end_s:
            for stack, weight in kernel.stacks(other).items():
                stacks[stack] = stacks.get(stack, 0) + weight
    return stacks


def _inside(stacks: Mapping[Stack, int]) -> dict[Stack, int]:
    """Kernel frames of the stacks that end in the kernel."""
    kernel: dict[Stack, int] = {}
    for stack, weight in stacks.items():
        inside = tuple(frame for frame in stack if frame.endswith(KERNEL_FRAME))
        if inside:
            kernel[inside] = kernel.get(inside, 0) + weight
    return kernel
