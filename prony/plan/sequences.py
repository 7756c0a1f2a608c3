"""Numbers of `${sequence}` in requests outside the load, apart from the load's own."""

from __future__ import annotations

import re

from prony.plan.step import Step
from prony.plan.workload import Workload

SEQUENCE = re.compile(r"\$\$\{|\$\{\s*sequence\b(?P<options>[^}|]*)(?P<escape>\|[^}]*)?\}")


def renumbered(workload: Workload, offset: int) -> Workload:
    """The workload with every `${sequence}` shifted by `offset` numbers, and without think times."""

    def later(match: re.Match[str]) -> str:
        if match["options"] is None:
            return match[0]
        options = dict(word.split("=", 1) for word in match["options"].split() if "=" in word)
        if "end" in options:  # a bounded sequence has no further numbers
            return match[0]
        step = int(options.get("step", "1"))
        options["start"] = str(int(options.get("start", "1")) + offset * step)
        words = " ".join(f"{name}={value}" for name, value in options.items())
        return f"${{sequence {words}{match['escape'] or ''}}}"

    def text(value: str) -> str:
        return SEQUENCE.sub(later, value)

    def step(step: Step) -> Step:
        auth = step.auth
        if auth is not None and auth.bearer is not None:
            auth = auth.model_copy(update={"bearer": text(auth.bearer)})
        return step.model_copy(
            update={
                "path": text(step.path),
                "headers": {name: text(value) for name, value in step.headers.items()},
                "body": None if step.body is None else text(step.body),
                "auth": auth,
            }
        )

    return workload.with_steps(step, pausing=False)
