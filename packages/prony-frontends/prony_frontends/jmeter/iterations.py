"""Translates an iteration of each thread group: its elements, and those outside of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.plan.step import Block
from prony_frontends.jmeter import handlers, last_sample, on_error
from prony_frontends.jmeter.connections import TranslatedGroup
from prony_frontends.jmeter.cookies import CookieRules, check_managers
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.groups import SET_UP, Group
from prony_frontends.jmeter.on_error import OnError
from prony_frontends.jmeter.plain_scripts import AFTER
from prony_frontends.jmeter.scope import Shared, TreeScope, at_iteration
from prony_frontends.jmeter.setup_properties import defaults
from prony_frontends.jmeter.tree import LoopContext, TreeWalk, entries_of, sends


@dataclass(frozen=True, slots=True)
class CommonElements:
    """Elements outside of all groups."""

    scope: TreeScope
    counts: dict[str, str]
    """Variables set at the start of every iteration."""
    feeders: tuple[str, ...]
    cookies: CookieRules | None


def translated_groups(
    found: Sequence[Sequence[Group]], above: CommonElements, values: KnownValues, shared: Shared
) -> list[tuple[TranslatedGroup, ...]]:
    """By phase, groups that send requests; the load needs at least one."""
    parts: list[tuple[TranslatedGroup, ...]] = []
    silent: list[Group] = []
    for phase in found:
        walked_groups = [(group, _translated_group(group, above, values, shared)) for group in phase]
        silent += [group for group, part in walked_groups if part is None]
        parts.append(tuple(part for _, part in walked_groups if part is not None))
    if not parts[1]:
        raise values.unsent or found[1][0].node.wrong("at least one enabled and reachable HTTP request")
    if silent:
        values.note("left_out", f"left out, no requests: {', '.join(group.node.element for group in silent)}")
    return parts


def _translated_group(
    made: Group, above: CommonElements, values: KnownValues, shared: Shared
) -> TranslatedGroup | None:
    """A group's iteration; None when it sends nothing. Names are local to the group."""
    names, used, files = dict(values.variables), set(values.used), set(shared.feeders)
    opened, referred = dict(values.opened), set(values.referred)
    above_rows = set(values.rows_here)
    shared.cookies, shared.given = above.cookies, {}
    values.users, values.group = made.users, made.label
    values.sets_up = made.node.tag == SET_UP
    values.lasts_s, values.schedule = made.measured.duration_s, None
    walk = TreeWalk(values, shared, made.users, endless=made.measured.duration_s is not None)
    begins = at_iteration(values.above, values, shared, rows_at=True)
    entries = entries_of(made.node.below, above.scope, walk, LoopContext(), rows_at=True)
    acts = any(sends(entry) for entry in entries)
    check_managers([request.scope.cookies for request in walk.requests], values)
    _check_actions(made, walk, values)
    after = [
        processor
        for request in walk.requests
        for processor in request.scope.processors
        if processor.tag in AFTER
    ]
    if after and made.on_error is not OnError.GO_ON:
        values.note("script_after_failure", "its script does not run after a failed request", after[0])
    entries = walk.loop_exits[0].iteration(last_sample.noted(entries, values))
    begins = [*defaults(values), *begins]
    entries = [*begins, *on_error.guarded(entries, made.on_error, made.node, values)]
    if above.counts:
        entries.insert(0, Block(set=above.counts))
    part = TranslatedGroup(
        made,
        tuple(entries),
        tuple(walk.requests),
        {
            name: text
            for name, text in values.initial.items()
            if name in values.used and (values.sets_up or name not in values.given.values())
        },
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
    alone = ("shareMode.group", "shareMode.thread")  # each group opens the file separately
    values.opened = {
        key: feeder for key, feeder in values.opened.items() if key in opened or not key.endswith(alone)
    }
    return part if acts else None


def _check_actions(made: Group, walk: TreeWalk, values: KnownValues) -> None:
    """Raises Refused where both a request's handler and the group act on errors."""
    for request in walk.requests:
        handler = request.scope.handler
        beside = handler is not None and not handlers.is_of_group(handler, values)
        if handler is not None and beside and made.on_error is not OnError.GO_ON:
            raise handler.refused(
                "a second action after an error", "keep one, here, in the group or above", "conflict"
            )
