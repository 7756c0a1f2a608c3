"""One iteration of each thread group: its elements, and those above it, into what its users do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.plan.step import Block
from prony_frontends.jmeter import handlers, last_sample, on_error
from prony_frontends.jmeter.connections import TranslatedGroup
from prony_frontends.jmeter.cookies import CookieRules, check_managers
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.groups import Group
from prony_frontends.jmeter.on_error import OnError
from prony_frontends.jmeter.plain_scripts import AFTER
from prony_frontends.jmeter.scope import Shared, TreeScope, at_iteration
from prony_frontends.jmeter.tree import LoopContext, TreeWalk, entries_of, sends


@dataclass(frozen=True, slots=True)
class CommonElements:
    """What stands above all groups."""

    scope: TreeScope
    counts: dict[str, str]
    """Set at the begin of every iteration."""
    feeders: tuple[str, ...]
    cookies: CookieRules | None


def translated_groups(
    found: Sequence[Sequence[Group]], above: CommonElements, values: KnownValues, shared: Shared
) -> list[tuple[TranslatedGroup, ...]]:
    """Of each phase, those whose users send something: of the load at least one."""
    parts: list[tuple[TranslatedGroup, ...]] = []
    silent: list[Group] = []
    for phase in found:
        made = [(one, _translated_group(one, above, values, shared)) for one in phase]
        silent += [one for one, part in made if part is None]
        parts.append(tuple(part for _, part in made if part is not None))
    if not parts[1]:
        raise values.unsent or found[1][0].node.wrong(
            "at least one HTTP request that is enabled and that a user can come to"
        )
    if silent:
        values.note(
            f"these groups send no request and are left out: {', '.join(one.node.element for one in silent)}"
        )
    return parts


def _translated_group(
    made: Group, above: CommonElements, values: KnownValues, shared: Shared
) -> TranslatedGroup | None:
    """One group's way; None where no request is on it. What it gives names to is not known to the others."""
    names, used, files = dict(values.variables), set(values.used), set(shared.feeders)
    opened, referred = dict(values.opened), set(values.referred)
    above_rows = set(values.rows_here)
    shared.cookies, shared.given = above.cookies, {}
    values.users, values.group = made.users, made.label
    values.lasts_s, values.schedule = made.measured.duration_s, None
    walk = TreeWalk(values, shared, made.users, endless=made.measured.duration_s is not None)
    begins = at_iteration(values.above, values, shared, rows_at=True)
    entries = entries_of(made.node.below, above.scope, walk, LoopContext(), rows_at=True)
    acts = any(sends(entry) for entry in entries)
    check_managers([one.scope.cookies for one in walk.requests], values)
    _check_actions(made, walk, values)
    after = [one for request in walk.requests for one in request.scope.processors if one.tag in AFTER]
    if after and made.on_error is not OnError.GO_ON:
        values.note(
            f"{after[0].element}: after a request that fails its script is left out; in JMeter it runs"
        )
    entries = walk.ways[0].iteration(last_sample.noted(entries, values))
    entries = [*begins, *on_error.guarded(entries, made.on_error, made.node, values)]
    if above.counts:
        entries.insert(0, Block(set=above.counts))
    part = TranslatedGroup(
        made,
        tuple(entries),
        tuple(walk.requests),
        {name: text for name, text in values.initial.items() if name in values.used},
        tuple(
            name
            for name, feeder in shared.feeders.items()
            if name in above.feeders or name not in files or feeder.on_use or name in values.rows_here
        ),
        shared.cookies,
    )
    changing = {variable: Text.placeholder(name) for variable, name in values.values.items()}
    values.variables, values.used, values.referred = names | changing, used, referred
    values.rows_here = above_rows
    alone = ("shareMode.group", "shareMode.thread")  # each group opens the file for itself
    values.opened = {
        key: feeder for key, feeder in values.opened.items() if key in opened or not key.endswith(alone)
    }
    return part if acts else None


def _check_actions(made: Group, walk: TreeWalk, values: KnownValues) -> None:
    """Raises Refused where a request has a handler beside the group's own action after an error."""
    for request in walk.requests:
        handler = request.scope.handler
        beside = handler is not None and not handlers.is_of_group(handler, values)
        if handler is not None and beside and made.on_error is not OnError.GO_ON:
            raise handler.refused(
                "a second action after an error", "keep one, here or in the thread group and above it"
            )
