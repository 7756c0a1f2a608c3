"""JIT compilation between two readings of a JVM."""

from __future__ import annotations

from prony.evidence.server import JvmSnapshot


def compiling_s(before: JvmSnapshot, after: JvmSnapshot) -> float | None:
    """CPU time of the compiler threads; if not read, elapsed time of the compilations that ended in between.
    None: neither is known.
    """
    if not elapsed_only(before, after):
        return _between(before.compilers_cpu_s, after.compilers_cpu_s)
    return _between(before.jit_time_s, after.jit_time_s)


def waited_s(before: JvmSnapshot, after: JvmSnapshot) -> float | None:
    """Time in which compilations that ended in between waited for a CPU, summed over compilers. None: the
    JVM's count or the compilers' CPU time is not known.
    """
    if elapsed_only(before, after):
        return None
    took_s = _between(before.jit_time_s, after.jit_time_s)
    ran_s = _between(before.compilers_cpu_s, after.compilers_cpu_s)
    return None if took_s is None or ran_s is None else max(0.0, took_s - ran_s)


def elapsed_only(before: JvmSnapshot, after: JvmSnapshot) -> bool:
    """Whether only the JVM's own count is known, which includes waits for a CPU."""
    return before.compilers_cpu_s is None or after.compilers_cpu_s is None


def _between(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)
