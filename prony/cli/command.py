"""Makes a function a command that measures: it gets the shared options, and with --resume the stored plan is
continued in its place. Must not know any command.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

from prony.cli import measure, options
from prony.cli.common import Common, is_given


def measures(
    *, without: tuple[str, ...] = (), beside_resume: tuple[str, ...] = ()
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Gives a command the options of `Common`, but for those that cannot apply to it; it receives them as
    `common`. With --resume the command itself is not called: the stored plan is continued, and of the
    command's own parameters only those `beside_resume` may be given.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        hints = get_type_hints(command, include_extras=True)
        shared = get_type_hints(Common, include_extras=True)
        own = [one for one in inspect.signature(command).parameters.values() if one.name != "common"]
        parameters = [one.replace(annotation=hints[one.name]) for one in own]
        names = [field.name for field in fields(Common) if field.name not in without]
        defaults = Common()
        parameters += [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=options.LIMITS if name == "limits" else getattr(defaults, name),
                annotation=shared[name],
            )
            for name in names
        ]

        def run(**given: Any) -> int:
            common = Common(**{name: given.pop(name) for name in names})
            if common.resume is None:
                return command(**given, common=common)
            taken = {name: given.pop(name) for name in beside_resume}
            others = {
                _option_of(one): given[one.name]
                for one in parameters
                if one.name in given
                and is_given(given[one.name], getattr(one.default, "default", one.default))
            }
            return measure.resume(common, others, **taken)

        run.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": int}
        run.__doc__, run.__name__ = command.__doc__, command.__name__
        return run

    return decorate


def _option_of(parameter: inspect.Parameter) -> str:
    """As it is typed, such as `--set`; the plain name of one without dashes."""
    described = (parameter.default, *getattr(parameter.annotation, "__metadata__", ()))
    words = [word for one in described for word in getattr(one, "param_decls", None) or ()]
    return next((word for word in words if word.startswith("--")), parameter.name)
