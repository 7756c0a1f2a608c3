"""Makes a function a command that measures: shared options, and --resume in place of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, get_type_hints

from prony.cli import measure
from prony.cli.common import Common, is_given
from prony.cli.shortened import HELP_ALL

PLAN = "plan"


def measures(
    *,
    without: tuple[str, ...] = (),
    beside_resume: tuple[str, ...] = (),
    continued: Callable[..., Mapping[str, Any]] = dict,
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Gives a command its options. A parameter whose type is a dataclass stands for an option per field, but
    for those that cannot apply; every such command has `common: Common`. With --resume the command itself is
    not called: the stored plan is continued, and of its own parameters only those `beside_resume` may be
    given, which `continued` turns into arguments of `measure.resume`.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        hints = get_type_hints(command, include_extras=True)
        parameters: list[inspect.Parameter] = []
        groups: dict[str, tuple[type, list[str]]] = {}
        for param in inspect.signature(command).parameters.values():
            hint = hints[param.name]
            if isinstance(hint, type) and is_dataclass(hint):
                made = [option for option in _options_of(hint) if option.name not in without]
                groups[param.name] = (hint, [option.name for option in made])
                parameters += made
            else:
                parameters.append(param.replace(annotation=hint))

        parameters.append(HELP_ALL)

        def run(**given: Any) -> int:
            del given[HELP_ALL.name]
            common = Common(**{name: given.pop(name) for name in groups["common"][1]})
            named = [
                param
                for param in parameters
                if param.name in given
                and is_given(given[param.name], getattr(param.default, "default", param.default))
            ]
            says_what = any(param.name == PLAN or param.name not in beside_resume for param in named)
            if common.resume is None or (says_what and measure.needs_credentials(common)):
                made = {
                    group: kind(**{name: given.pop(name) for name in names})
                    for group, (kind, names) in groups.items()
                    if group != "common"
                }
                return command(**given, **made, common=common)
            others = {
                _option_of(param): given[param.name] for param in named if param.name not in beside_resume
            }
            taken = {name: given[name] for name in beside_resume}
            return measure.resume(common, others, **continued(**taken))

        run.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
        run.__annotations__ = {param.name: param.annotation for param in parameters} | {"return": int}
        run.__doc__, run.__name__ = command.__doc__, command.__name__
        grouped = {name for _, names in groups.values() for name in names}
        run.own = {param.name for param in parameters} - grouped  # type: ignore[attr-defined]
        return run

    return decorate


def _options_of(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        param.replace(annotation=hints[param.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for param in inspect.signature(group).parameters.values()
    ]


def _option_of(parameter: inspect.Parameter) -> str:
    """As typed, such as `--set`; the plain name of an argument."""
    described = (parameter.default, *getattr(parameter.annotation, "__metadata__", ()))
    # Within Annotated the parser's library has the first of the names where a default stands otherwise.
    words = [
        word
        for item in described
        for word in (getattr(item, "default", None), *(getattr(item, "param_decls", None) or ()))
    ]
    return next((word for word in words if str(word).startswith("--")), parameter.name)
