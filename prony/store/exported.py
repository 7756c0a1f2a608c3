"""The rows of an export as models, which validate untrusted input and remove its credentials."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from prony import redaction
from prony.errors import UsageError
from prony.evidence.host import Fingerprint
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.plan.plan import Plan
from prony.store.columns import MOST_SHOWN, figures_of, parsed, shown, storable, time_of
from prony.store.keeping import trial_columns
from prony.store.labels import MOST_NOTE_CHARACTERS
from prony.store.rows import ExperimentStatus

LOCAL = frozenset({"owner"})
"""Columns without meaning on another host."""
T = TypeVar("T")
R = TypeVar("R", bound=BaseModel)
LARGEST_WHOLE = 2**64
_SURROGATE = re.compile("[\ud800-\udfff]")


class Misfit(ValueError):
    """A sentence with field, value and expectation."""


def _plain(text: str) -> str:
    if storable(text) != text:
        raise ValueError("expected text without NUL characters and surrogates")
    return text


def _object(text: str) -> str:
    try:
        document = parsed(text)
    except (ValueError, RecursionError) as fault:
        raise ValueError(f"expected a JSON object ({fault})") from fault
    if not isinstance(document, dict):
        raise ValueError("expected a JSON object")
    return text


_Text = Annotated[str, AfterValidator(_plain)]
_Id = Annotated[str, Field(pattern=r"^[0-9]{6}-[0-9a-z]{4}$")]
_TrialId = Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$")]
"""Safe as a file name (`prony results export -o FOLDER`)."""
_Key = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,32}$")]
_Word = Annotated[_Text, Field(max_length=32)]
_Name = Annotated[_Text, Field(max_length=128)]
_Place = Annotated[int, Field(ge=0, lt=2**31)]
_Time = Annotated[str, BeforeValidator(lambda text: time_of(text).isoformat())]
"""In UTC, so that text order is time order."""
_Object = Annotated[str, AfterValidator(_object)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class ExperimentColumns(_Row):
    id: _Id
    name: Annotated[_Text, Field(max_length=10_000)]
    created: _Time
    ended: _Time | None = None
    status: ExperimentStatus
    spec: _Object
    fingerprint_key: _Key
    fingerprint: _Object
    seed: str = Field(pattern=r"^[0-9]{1,20}$")
    quick: bool
    prony_version: _Word


class TrialColumns(_Row):
    """Columns of table trials; those repeated from the record must match."""

    id: _TrialId
    experiment_id: _Id
    server: _Name
    workload: _Name
    load_name: _Name
    kind: _Word
    block: _Place
    position: _Place
    quick: bool
    started: _Time
    ended: _Time
    failure: _Text | None
    fingerprint_key: _Word
    prony_version: _Word
    record_format: Literal["json+zlib"]
    record: _Object


class JudgementColumns(_Row):
    trial_id: _TrialId
    made: _Time
    prony_version: _Word
    conforms: bool
    judgement: _Object
    figures: _Object


class NoteColumns(_Row):
    experiment_id: _Id
    made: _Time
    made_by: Annotated[_Text, Field(max_length=300)]
    text: Annotated[_Text, Field(min_length=1, max_length=MOST_NOTE_CHARACTERS)]


def experiment(row: object) -> dict[str, Any]:
    """The row for storing. Raises Misfit."""
    what = "experiment"
    columns = _row(what, ExperimentColumns, row)
    plan = parsed(columns.spec)
    _plain_values(f"{what}.spec", plan, finite=False)
    _read(f"{what}.spec", lambda: Plan.model_validate(plan))
    _plain_values(f"{what}.fingerprint", parsed(columns.fingerprint), finite=True)
    host = _read(f"{what}.fingerprint", lambda: Fingerprint.model_validate_json(columns.fingerprint))
    if host.key != columns.fingerprint_key:
        raise Misfit(f"the fingerprint of {columns.id} has two keys")
    return columns.model_dump() | {
        "name": redaction.text(columns.name),
        "spec": _public(f"{what}.spec", columns.spec),
    }


def trial(row: object) -> dict[str, Any]:
    """The row for storing, with its record compressed. Raises Misfit if the two disagree."""
    what = _named("trial", row, "id")
    columns = _row(what, TrialColumns, row)
    document = parsed(columns.record)
    _read(f"{what}: record", lambda: _Moment.model_validate(document))
    _plain_values(f"{what}: record", document, finite=False)
    record = _read(f"{what}: record", lambda: TrialRecord.model_validate_json(columns.record))
    stored = columns.model_dump() | {
        name: redaction.name(getattr(columns, name)) for name in ("server", "workload", "load_name")
    }
    if columns.failure is not None:
        stored["failure"] = redaction.text(columns.failure)
    differing = [name for name, value in trial_columns(record).items() if stored[name] != value]
    if differing:
        raise Misfit(f"{what} does not match its record ({', '.join(differing)})")
    return stored | {"record": zlib.compress(_public(f"{what}: record", columns.record).encode())}


class _Moment(BaseModel):
    started_at: _Time | None = None
    ended_at: _Time | None = None


def judgement(row: object, of: set[str]) -> dict[str, Any]:
    """The row for storing. Raises Misfit unless it judges one of these trials."""
    what = _named("judgement of trial", row, "trial_id")
    columns = _row(what, JudgementColumns, row)
    document = parsed(columns.judgement)
    _plain_values(f"{what}: judgement", document, finite=False)
    parsed_ = _read(f"{what}: judgement", lambda: Judgement.model_validate_json(columns.judgement))
    if parsed_.conforms is not columns.conforms:
        raise Misfit(f"{what}: column and judgement disagree about conforming")
    _, wrong = figures_of(columns.figures)
    if wrong:
        raise Misfit(f"{what}: {wrong[0]}")
    if columns.trial_id not in of:
        raise Misfit(f"a judgement is of {columns.trial_id}, which is not in the file")
    return columns.model_dump(mode="json") | {"judgement": _public(f"{what}: judgement", columns.judgement)}


def note(row: object) -> dict[str, Any]:
    columns = _row("note", NoteColumns, row)
    return columns.model_dump() | {"text": redaction.text(columns.text)}


def without_local(row: object) -> object:
    if not isinstance(row, dict):
        return row
    return {name: value for name, value in row.items() if name not in LOCAL}


def rows(what: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise Misfit(f"{what} is {shown(value)}; expected a list")
    return value


def _row(what: str, model: type[R], row: object) -> R:
    if not isinstance(row, dict):
        raise Misfit(f"{what} is {shown(row)}; expected an object")
    return _read(what, lambda: model.model_validate(row))


def _public(what: str, text: str) -> str:
    return _read(what, lambda: redaction.as_json(text))


def _read(what: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except ValidationError as fault:
        raise Misfit(_sentence(what, fault)) from fault
    except RecursionError as fault:
        raise Misfit(f"{what} is nested too deeply") from fault
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, UsageError) as fault:
        raise Misfit(f"{what} is not understood: {fault}") from fault


def _sentence(what: str, fault: ValidationError) -> str:
    first = fault.errors(include_url=False)[0]
    where = ".".join([what, *(str(part) for part in first["loc"])])
    match first["type"]:
        case "missing":
            return f"{where} is missing"
        case "extra_forbidden":
            return f"{where} is an unknown field"
        case "value_error":
            expected = str(first["ctx"]["error"])
        case "union_tag_invalid":
            expected = f"expected one of {first['ctx']['expected_tags']}"
        case _:
            expected = first["msg"].replace("Input should", "expected it to", 1)
    if expected.startswith("expected it to be "):
        expected = expected.replace("it to be ", "", 1)
    return f"{where} is {shown(first['input'])}; {expected}"


def _named(what: str, row: object, key: str) -> str:
    name = row.get(key) if isinstance(row, Mapping) else None
    return f"{what} {name}" if isinstance(name, str) and len(name) <= 64 and name.isprintable() else what


def _leaves(value: object, where: str) -> Iterator[tuple[str, object]]:
    """Values that hold none, and keys."""
    stack: list[tuple[str, object]] = [(where, value)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, dict):
            yield from ((f"a key of {place}", key) for key in item)
            stack.extend((f"{place}.{key[:MOST_SHOWN]}", inner) for key, inner in item.items())
        elif isinstance(item, list):
            stack.extend((f"{place}.{at}", inner) for at, inner in enumerate(item))
        else:
            yield place, item


def _plain_values(where: str, value: object, *, finite: bool) -> None:
    for place, leaf in _leaves(value, where):
        if isinstance(leaf, str) and not leaf.isascii() and _SURROGATE.search(leaf):
            raise Misfit(f"{place} is {shown(leaf)}; expected text without surrogates")
        if isinstance(leaf, int) and abs(leaf) > LARGEST_WHOLE:
            raise Misfit(f"{place} is {shown(leaf)}; expected a number of at most 20 digits")
        if finite and isinstance(leaf, float) and not math.isfinite(leaf):
            raise Misfit(f"{place} is {shown(leaf)}; expected a finite number")
