"""The kernel's share from a second profiler: parts as they truly are, as many samples as before, and a
sentence where it could not be had.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from prony.errors import EnvironmentFault
from prony.evidence.profile import Profile, Sampling, Stack
from prony_explain.budget import shares
from prony_explain.kernel import cpu_samples, scaled, with_kernel
from prony_explain.profilers.base import Profiled, Schedule, Slices, Unavailable
from prony_explain.profilers.with_kernel import WithKernel
from prony_explain.rules import Part, rules_for
from prony_explain.sampling import sampling

NODE = rules_for("node")
PYTHON = rules_for("python")
SCRIPT: Stack = ("/app/server.js`hello_[s]",)
WRITE: Stack = ("node:net`_writeGeneric_[s]", "node`writev_[s]")
PROGRAM: Stack = ("(program)",)
SEND: Stack = ("node`node::Write", "entry_SYSCALL_64_[k]", "tcp_sendmsg_[k]")
WAKE: Stack = ("node`uv__io_poll", "entry_SYSCALL_64_[k]", "__schedule_[k]")
USER: Stack = ("node`v8::internal::Execution",)


def drawn(shares_of: Mapping[Stack, float], samples: int, seed: int, slices: int = 10) -> Sampling:
    draw = np.random.default_rng(seed)
    made: list[tuple[float, float, Mapping[Stack, int]]] = []
    for at in range(slices):
        counts = draw.multinomial(samples // slices, list(shares_of.values()))
        made.append(
            (at, at + 1.0, {s: int(count) for s, count in zip(shares_of, counts, strict=True) if count})
        )
    return sampling("samples", made)


@pytest.mark.parametrize(
    ("seen", "kernel", "true"),
    [
        (
            {SCRIPT: 0.4, WRITE: 0.3, PROGRAM: 0.3},
            {SEND: 0.25, WAKE: 0.15, USER: 0.6},
            # The calls and the native rest hold 0.6, of which 0.4 is the kernel's: a third of each is left.
            {
                Part.APPLICATION: 0.4,
                Part.NETWORK: 0.25,
                Part.SCHEDULING: 0.15,
                Part.RUNTIME: 0.1,
                Part.UNATTRIBUTED: 0.1,
            },
        ),
        (
            {SCRIPT: 0.8, PROGRAM: 0.2},
            {SEND: 0.3, USER: 0.7},
            {Part.APPLICATION: 0.7, Part.NETWORK: 0.3},
        ),
        ({SCRIPT: 0.7, WRITE: 0.3}, {USER: 1.0}, {Part.APPLICATION: 0.7, Part.RUNTIME: 0.3}),
    ],
    ids=["within the calls", "more than the calls", "none"],
)
def test_the_parts_are_what_both_profilers_say(
    seen: Mapping[Stack, float], kernel: Mapping[Stack, float], true: Mapping[Part, float]
) -> None:
    cpu = drawn(seen, 20_000, seed=4)
    merged = with_kernel(cpu, drawn(kernel, 15_000, seed=5), NODE)
    assert [one.total for one in merged.slices] == [one.total for one in cpu.slices]
    found = {part: one.value for part, one in shares(merged, NODE).parts.items()}
    assert found == pytest.approx(true, abs=0.015)


def test_the_intervals_of_the_merged_shares_cover() -> None:
    """By simulation: the kernel's share is 0.4 in truth, and each profile draws its own samples."""
    inside = {Part.APPLICATION: 0, Part.NETWORK: 0, Part.SCHEDULING: 0}
    true = {Part.APPLICATION: 0.4, Part.NETWORK: 0.25, Part.SCHEDULING: 0.15}
    rounds = 150
    for seed in range(rounds):
        cpu = drawn({SCRIPT: 0.4, WRITE: 0.3, PROGRAM: 0.3}, 3000, seed)
        kernel = drawn({SEND: 0.25, WAKE: 0.15, USER: 0.6}, 3000, rounds + seed)
        found = shares(with_kernel(cpu, kernel, NODE), NODE)
        for part, share in true.items():
            ends = found.parts[part].interval()
            assert ends is not None
            inside[part] += ends[0] <= share <= ends[1]
    assert min(inside.values()) >= 0.9 * rounds


def test_a_slice_without_samples_of_the_kernel_stays_as_it_is() -> None:
    cpu = sampling("samples", [(0.0, 1.0, {SCRIPT: 5, WRITE: 5}), (1.0, 2.0, {SCRIPT: 5, WRITE: 5})])
    kernel = sampling("samples", [(0.1, 1.1, {SEND: 2, USER: 8})])
    first, second = with_kernel(cpu, kernel, NODE).slices
    merged = with_kernel(cpu, kernel, NODE)
    assert merged.stacks(second) == {SCRIPT: 5, WRITE: 5}
    assert merged.stacks(first) == {
        SCRIPT: 5,
        (*WRITE, "[outside the kernel]"): 3,
        ("entry_SYSCALL_64_[k]", "tcp_sendmsg_[k]"): 2,
    }


def test_threads_that_wait_take_no_part() -> None:
    waits: Stack = ("MainThread", "threading.py`wait_[s]", "libc.so.6`sem_wait")
    send: Stack = ("MainThread", "app.py`serve_[s]", "libc.so.6`send")
    cpu = sampling("samples", [(0.0, 1.0, {waits: 90, send: 10})])
    merged = with_kernel(cpu, sampling("samples", [(0.0, 1.0, {SEND: 6, USER: 4})]), PYTHON)
    found = {part: one.value for part, one in shares(merged, PYTHON).parts.items()}
    assert found == pytest.approx({Part.NETWORK: 0.6, Part.LIBRARY: 0.4})
    assert merged.all_stacks()[waits] == 90


def test_without_a_second_profiler_nothing_changes() -> None:
    cpu = drawn({SCRIPT: 1.0}, 100, seed=1)
    profile = Profile(runtime="node", profiler="V8", cpu=cpu)
    assert cpu_samples(profile, NODE) is cpu
    assert cpu_samples(profile.model_copy(update={"cpu": None, "kernel": cpu}), NODE) is None


@pytest.mark.parametrize("total", [0, 1, 7, 50, 100, 333])
def test_scaled_stacks_have_the_total_that_was_asked_for(total: int) -> None:
    stacks: dict[Stack, int] = {("a",): 60, ("b",): 30, ("c",): 10}
    found = scaled(stacks, total)
    assert sum(found.values()) == total
    for stack, weight in stacks.items():
        assert abs(found.get(stack, 0) - weight * total / 100) <= 1
    assert scaled({}, 0) == {}


class Made:
    """A profiler that finds what it is told to."""

    def __init__(
        self,
        name: str,
        stacks: Mapping[Stack, int],
        refuses: Exception | None = None,
        fails: str = "",
        holds: Exception | None = None,
    ) -> None:
        self.name, self.stacks, self.refuses, self.fails = name, stacks, refuses, fails
        self.holds = holds
        self.detached = 0

    def attach(self) -> None:
        if self.refuses is not None:
            raise self.refuses

    def profile(self, schedule: Schedule) -> Profiled:
        if self.fails:
            raise Unavailable(self.fails)
        slices = Slices(schedule.begins_s)
        slices.add(schedule.begins_s, schedule.ends_s[-1], self.stacks)
        return Profiled(event="e", interval_s=0.01, cpu=slices.sampling("samples"))

    def detach(self) -> None:
        self.detached += 1
        if self.holds is not None:
            raise self.holds


def profiled(first: Made, second: Made) -> tuple[Profiled, str]:
    both = WithKernel(first, second, "kernel frames are missing")
    both.attach()
    found = both.profile(Schedule(1.0, (2.0,), lambda _wait_s: False))
    name = both.name
    both.detach()
    assert (first.detached, second.detached) == (1, 1 if second.refuses is None else 2)
    return found, name


def test_both_profilers_run_at_once() -> None:
    found, name = profiled(Made("V8", {SCRIPT: 3}), Made("perf 6", {SEND: 2}))
    assert name == "V8, perf 6 for the kernel"
    assert found.missing == ()
    assert found.cpu is not None
    assert found.cpu.all_stacks() == {SCRIPT: 3}
    assert found.kernel is not None
    assert found.kernel.all_stacks() == {SEND: 2}


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (
            Made("perf", {SEND: 1}, refuses=Unavailable("no CPU profile: perf is not installed")),
            "perf is not installed",
        ),
        (
            Made("perf", {SEND: 1}, refuses=EnvironmentFault("perf --version printed no version")),
            "perf --version printed no version",
        ),
        (
            Made("perf", {SEND: 1}, refuses=OSError(12, "no memory"), holds=OSError("no folder")),
            "perf failed: OSError: [Errno 12] no memory",
        ),
        (Made("perf", {SEND: 1}, fails="no CPU profile: it ended"), "it ended"),
        (Made("perf", {USER: 1}), "perf took no kernel samples"),
    ],
)
def test_a_second_profiler_that_cannot_be_used_costs_a_sentence(second: Made, why: str) -> None:
    found, name = profiled(Made("V8", {SCRIPT: 3}), second)
    assert name == "V8"
    assert found.kernel is None
    assert found.missing == (f"kernel frames are missing ({why})",)
    assert found.cpu is not None


def test_the_first_profiler_decides_whether_there_is_a_profile() -> None:
    both = WithKernel(Made("V8", {}, refuses=Unavailable("no inspector")), Made("perf", {SEND: 1}), "x")
    with pytest.raises(Unavailable, match="no inspector"):
        both.attach()
