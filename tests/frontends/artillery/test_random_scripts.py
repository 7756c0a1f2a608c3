"""prony artillery: random scripts translate or are refused, and random text is no script."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prony.errors import PronyError
from prony_frontends.artillery.translate import translate
from prony_frontends.base import Refused, explain
from tests.frontends.conftest import from_file

WORDS = st.sampled_from([
    "{{ n }}", "{{ $uuid }}", "{{ $randomString(3) }}", "{{", "}}", "${x}", "$", "/a", "$.a.b", "10%", "1-3",
    "é", "",
    "{{ $loopCount }}", "{{ c }}", "$.a[*].b", "$..a", "$.a[?(@.b == 1)]", "(",
    "http://h:8080/x", "200", "true", "$loopCount < 2", "GET", "# x", "\n",
])  # fmt: skip

LEAVES = (
    st.none() | st.booleans() | st.integers(-3, 60) | st.floats(allow_nan=True) | WORDS | st.text(max_size=6)
)

KEYS = st.sampled_from([
    "url", "json", "body", "form", "qs", "headers", "capture", "match", "expect", "ifTrue", "auth", "cookie",
    "loop", "count", "over", "think", "get", "post", "put", "as", "value", "regexp", "header", "statusCode",
    "user", "log", "probability", "whileTrue", "loopElement", "strict", "notStatusCode", "hasProperty",
    "notHasProperty", "matchesRegexp", "followRedirect", "maxRedirects",
])  # fmt: skip

TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)

OPTIONAL = (
    "json",
    "body",
    "qs",
    "capture",
    "expect",
    "headers",
    "ifTrue",
    "probability",
    "match",
    "maxRedirects",
)

REQUESTS = st.dictionaries(st.sampled_from(["get", "post", "put"]), st.fixed_dictionaries(
    {"url": WORDS}, optional=dict.fromkeys(OPTIONAL, TREES)
), min_size=1, max_size=1)  # fmt: skip

STEPS = REQUESTS | st.fixed_dictionaries({"think": LEAVES}) | st.fixed_dictionaries(
    {"loop": st.lists(REQUESTS, max_size=2)}, optional={"count": LEAVES, "over": TREES}
) | TREES  # fmt: skip

PHASES = st.lists(st.dictionaries(
    st.sampled_from(["duration", "arrivalRate", "rampTo", "arrivalCount", "pause", "maxVusers", "mode"]),
    st.integers(0, 9) | LEAVES, max_size=3,
), max_size=3)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    phases=PHASES | st.just([{"duration": 1, "arrivalRate": 1}]),
    flow=st.lists(STEPS, max_size=4),
    config=st.dictionaries(
        st.sampled_from(["variables", "plugins", "http", "defaults", "timeout", "tls", "payload"]),
        TREES,
        max_size=2,
    ),
    as_json=st.booleans(),
)
def test_a_random_script_translates_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory,
    phases: object,
    flow: object,
    config: dict[str, object],
    as_json: bool,
) -> None:
    whole = {
        "config": {"target": "http://h:8080", "phases": phases, "plugins": {"expect": {}}, **config},
        "scenarios": [{"flow": flow}],
    }
    file = tmp_path_factory.mktemp("s") / "s.yml"
    text = json.dumps(whole) if as_json else yaml.safe_dump(whole, allow_unicode=True)
    file.write_text(text, encoding="utf-8")
    try:
        translated = translate(["run", str(file)])
    except PronyError as refused:
        said = re.match(rf"{re.escape(str(file))}(?::(\d+))?: (?s:.+)", str(refused))
        assert said is not None, refused  # noqa: PT017 - either outcome is right
        if isinstance(refused, Refused):
            assert refused.element  # noqa: PT017
            assert refused.instead  # noqa: PT017
            assert refused.file == str(file)  # noqa: PT017
            assert refused.line is not None  # noqa: PT017
            assert 1 <= refused.line <= text.count("\n") + 1  # noqa: PT017
        return
    again = file.with_name("plan.yaml")
    again.write_text(explain(translated), encoding="utf-8")
    assert from_file(again).trial.workload == translated.trial.workload


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=80) | st.lists(WORDS, max_size=8).map("\n- : ".join))
def test_random_text_is_no_script(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.mktemp("s") / "s.yml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(PronyError):
        translate(["run", str(file)])
