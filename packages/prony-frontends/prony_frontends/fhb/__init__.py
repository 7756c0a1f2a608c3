"""`prony fhb [flags] URL`: Faban's HTTP bench and its two checks."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from prony import redaction
from prony.errors import UsageError
from prony.plan.load import ClosedLoad, SteadyWindow
from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.target import TlsOptions, parse_url
from prony.plan.think import NO_THINK, Think
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Workload
from prony.report.progress_state import SilentProgress
from prony_frontends.base import Context, FrontEnd, Note, Translated
from prony_frontends.fhb.arguments import TOOL, USAGE, FhbArguments, parse
from prony_frontends.fhb.figures import figures, report, save, summary

ACCEPT = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"
"""Default of Java's HTTP client, which Faban uses."""
FORM, BINARY = "application/x-www-form-urlencoded", "application/octet-stream"
START_EVERY_S = 0.02
"""Faban's interval between client starts."""


def translate(argv: Sequence[str]) -> Translated:
    """Translates fhb's arguments into a load. Raises UsageError."""
    return translated(parse(argv))


def translated(args: FhbArguments) -> Translated:
    """The load: a client every 20 ms; the window opens with the steady part."""
    target, path, _ = parse_url(args.url)
    trial = TrialPlan(
        workload=_workload(args, path),
        load=ClosedLoad(
            users=args.clients,
            think=Think(kind="constant", ms=args.think_ms) if args.think_ms else NO_THINK,
            ramp_up_s=min(args.ramp_up_s, args.clients * START_EVERY_S),
        ),
        measured=SteadyWindow(window_s=args.steady_s),
        warm_up=fixed(args.ramp_up_s),
        request_timeout_ms=30_000,
        preflight=False,
    )
    if target.https:
        target = target.model_copy(update={"tls": TlsOptions(insecure=True)})
    notes = list(args.notes)
    if args.ramp_down_s:
        notes.append(Note("ramp_down", f"the ramp-down of {args.ramp_down_s:g} s is left out"))
    return Translated(TOOL, target, trial, f"fhb {redaction.url(args.url)}", tuple(notes))


def _workload(args: FhbArguments, path: str) -> Workload:
    headers: dict[str, str] = {"Accept": args.accept or ACCEPT}
    if args.data is not None:
        headers["Content-Type"] = BINARY if args.binary else FORM
    literal = {name: value.replace("${", "$${") for name, value in headers.items()}
    try:
        step = Step.model_validate(
            {
                "name": "test",
                "path": path.replace("${", "$${"),
                "method": "GET" if args.data is None else "POST",
                "headers": literal,
                "body_file": None if args.data is None else str(args.data.absolute()),
                "expect": Expectation(status=tuple(range(200, 400))),
            }
        )
        return Workload(name=TOOL, title=f"{step.method} {path}", steps=(step,))
    except ValidationError as fault:
        reason = str(fault.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(f"fhb: the request cannot be sent: {reason}") from fault


def run(argv: Sequence[str], context: Context) -> int:
    """Runs fhb, from the first line to the exit code."""
    args = parse(argv)
    if args.help or args.version:
        context.stdout.write(USAGE if args.help else "Faban cd: Version 0.1\n")
        return 0
    made = translated(args)
    if context.options.explain:
        return context.explained(made)
    ran = context.measure(made, SilentProgress())
    results = figures(ran.window)
    for line in report(args, results):
        print(line, file=context.stdout)
    if args.save:
        save(args, summary(args, results, ran))
        print(f"Saving output from run in {args.folder}", file=context.stdout)
    return context.end(ran)


FRONT_END = FrontEnd(name=TOOL, usage=USAGE, translate=translate, run=run)
