"""Combines a profiler that does not see the kernel with a second one that does."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace

from prony_explain.profilers.base import Profiled, Profiler, Schedule, why
from prony_explain.sampling import KERNEL_FRAME

ENDS_WITHIN_S = 40.0
"""Limit for the second after the first has ended, well before the collector gives up (60 s)."""
NO_PROFILE = "no CPU profile: "


class WithKernel:
    """Both on one process. `without`: caveat if the second is unusable."""

    def __init__(self, profiler: Profiler, kernel: Profiler, without: str) -> None:
        self._profiler = profiler
        self._kernel = kernel
        self._without = without
        self._why = ""
        self._beside: Profiled | None = None

    @property
    def name(self) -> str:
        first = self._profiler.name
        return first if self._why else f"{first}, {self._kernel.name} for the kernel"

    def attach(self) -> None:
        """Raises Unavailable for the first profiler only."""
        self._profiler.attach()
        try:
            self._kernel.attach()
        except Exception as fault:  # of any kind: the first is attached
            self._lacks(fault)
            with suppress(Exception):
                self._kernel.detach()

    def profile(self, schedule: Schedule) -> Profiled:
        """Run both at once."""
        if self._why:
            return self._whole(self._profiler.profile(schedule))
        thread = threading.Thread(target=self._profile_kernel, args=(schedule,), daemon=True)
        thread.start()
        try:
            profiled = self._profiler.profile(schedule)
        finally:
            thread.join(ENDS_WITHIN_S)
        if thread.is_alive():
            self._why = f"{self._kernel.name} did not end within {ENDS_WITHIN_S:.0f} s"
        return self._whole(profiled)

    def _profile_kernel(self, schedule: Schedule) -> None:
        try:
            self._beside = self._kernel.profile(schedule)
        except Exception as fault:  # a defect here must not cost the first profile
            self._lacks(fault)

    def _lacks(self, fault: Exception) -> None:
        self._why = why(fault, self._kernel.name).removeprefix(NO_PROFILE)

    def _whole(self, profiled: Profiled) -> Profiled:
        """The first profile, with the second's samples if these have kernel frames."""
        kernel = self._beside.cpu if self._beside is not None else None
        if kernel is not None and any(frame.endswith(KERNEL_FRAME) for frame in kernel.frames):
            return replace(profiled, kernel=kernel)
        seen = self._beside.missing if self._beside is not None else ()
        self._why = self._why or next(iter(seen), f"{self._kernel.name} took no kernel samples")
        return replace(profiled, missing=(*profiled.missing, f"{self._without} ({self._why})"))

    def detach(self) -> None:
        try:
            with suppress(Exception):
                self._kernel.detach()
        finally:
            self._profiler.detach()
