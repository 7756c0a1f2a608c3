"""`prony artillery run [flags] SCRIPT`: Artillery's command line, scripts and report."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from prony.errors import UsageError
from prony.report.progress_state import SilentProgress
from prony_frontends.artillery import console, ensure
from prony_frontends.artillery.flags import USAGE
from prony_frontends.artillery.metrics import Metrics, aggregate, periods
from prony_frontends.artillery.translate import read, translate
from prony_frontends.base import Context, FrontEnd, Ran

FAILED, UNEXPECTED = 1, 21
"""Artillery's exit codes: a failed check of ensure (or an early end), and a failed expectation."""


def run(argv: Sequence[str], context: Context) -> int:
    """Runs Artillery's command line, from the first line to the exit code. Raises PronyError."""
    loaded = read(argv)
    planned = ensure.checks(loaded.ensure)
    if context.options.explain:
        return context.explained(loaded.translated)
    output = _output(loaded.given.values.get("output"))
    live = console.Live(
        loaded.phases, context.stdout, lambda: time.time() * 1000, lambda rows, at: periods(rows, at)
    )
    quiet = loaded.given.quiet
    ran = context.measure(loaded.translated, SilentProgress() if quiet else live)
    report = aggregate(loaded, ran)
    called = ran.report.script
    context.stdout.write(_printed(ran, "before"))
    if called is not None:
        context.stdout.write(called.printed_setup + called.printed_run)
        if called.error is not None:
            print(called.error, file=context.stderr)
    context.stdout.write(_printed(ran, "after"))
    if not quiet:
        live.ended(ran.report.elapsed_ms / 1000)
        print(console.summary(report, time.time() * 1000, loaded.hidden), file=context.stdout)
    if output is not None:
        _write(output, report, ran)
        print(f"Log file: {output}", file=context.stdout)
    checked = ensure.run(planned, report)
    if checked:
        print("\nChecks:", file=context.stdout)
        for result in checked:
            print(result.line, file=context.stdout)
    missed = any(not result.ok and result.check.strict for result in checked)
    missed = missed or (called is not None and called.error is not None)
    failed = bool(report.counters.get("plugins.expect.failed"))
    return context.end(ran, original=FAILED if missed else UNEXPECTED if failed else 0)


def _printed(ran: Ran, when: str) -> str:
    """Output of the processor's functions in the section before or after."""
    scripts = [stage.report.script for stage in ran.stages if stage.name == when]
    return "".join(script.printed_setup + script.printed_run for script in scripts if script is not None)


def _output(name: str | None) -> Path | None:
    """The report's path, checked before the load so that no run is lost. Raises UsageError."""
    if name is None:
        return None
    path = Path(name)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"--output {name}: expected a file in an existing folder")
    return path


def _write(path: Path, report: Metrics, ran: Ran) -> None:
    began_ms = ran.report.ready.started_unix_ns // 1_000_000
    parts = [part.as_json() for part in periods(ran.report.rows, began_ms)]
    whole = {"aggregate": report.as_json(), "intermediate": parts}
    path.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")


FRONT_END = FrontEnd(
    name="artillery",
    usage=USAGE,
    translate=translate,
    run=run,
    script_endings=(".yml", ".yaml"),
    before_script=("run",),
)
