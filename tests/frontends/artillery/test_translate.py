"""Artillery scripts become loads, or are refused with element, file and line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.load import OpenLoad
from prony.plan.step import Block, Entry, Step
from prony_frontends.artillery import header_patterns, json_patterns
from prony_frontends.artillery.flags import SWITCHES, USAGE, VALUES
from prony_frontends.artillery.translate import translate
from prony_frontends.base import Note, Reason, Translated, explain
from tests.entries import requests
from tests.frontends.artillery.scripts import SESSIONS, WHOLE, written
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import explained, from_file

HEAD = "config:\n  target: http://h:8080/base\n  phases: [{duration: 10, arrivalRate: 2}]\n"


def script(tmp_path: Path, text: str, *flags: str) -> Translated:
    file = tmp_path / "s.yml"
    file.write_text(text, encoding="utf-8")
    return translate(["run", *flags, str(file)])


def entries(tmp_path: Path, steps: str, config: str = "") -> tuple[Entry, ...]:
    text = f"{HEAD}{config}scenarios:\n  - flow:\n" + "".join(
        f"      {line}\n" for line in steps.splitlines()
    )
    return script(tmp_path, text).trial.workload.scenarios[0].steps


def flow(tmp_path: Path, steps: str, config: str = "") -> tuple[Step, ...]:
    """Of a flow without blocks."""
    found = entries(tmp_path, steps, config)
    assert all(isinstance(entry, Step) for entry in found)
    return found  # type: ignore[return-value]


def opened(translated: Translated) -> OpenLoad:
    assert isinstance(translated.trial.load, OpenLoad)
    return translated.trial.load


def test_a_whole_script_becomes_a_plan_that_can_be_read_again(tmp_path: Path) -> None:
    translated = translate(["run", written(tmp_path, WHOLE, "http://127.0.0.1:8080")])
    file = tmp_path / "plan.yaml"
    file.write_text(explain(translated), encoding="utf-8")
    assert from_file(file).trial.workload == translated.trial.workload
    (scenario,) = translated.trial.workload.scenarios
    assert [f"{s.method} {s.path}" for s in requests(scenario.steps)] == [
        "GET /a?q=a+b%26c%7E&r=7", "POST /echo", "PUT /p/0/${c}", "PUT /p/1/${c}",
        "DELETE /d/x", "DELETE /d/y",
        "GET /same", "POST /f", "HEAD /h", "OPTIONS /o", "PATCH /pp",
    ]  # fmt: skip
    steps = requests(scenario.steps)
    assert steps[6].repeat == 3
    body = steps[1].body
    assert body == '{"a":1,"b":7,"c":"x${random int 3 3 | json}","d":[1,2.5,true,null,"é\\"/"],"e":3}'
    assert steps[0].think is not None
    assert steps[0].think.ms == 10


def test_a_note_with_a_control_character_can_be_read_back(tmp_path: Path) -> None:
    made = script(tmp_path, f"{HEAD}scenarios:\n  - flow: [{{get: {{url: /}}}}]\n")
    noted = replace(made, notes=(Note("own", "\x1b[2J clears a screen, \x85 ends no line"),))
    assert "\\x1b[2J" in explain(noted)
    assert explained(noted) == made.trial


def test_experiment_d_is_one_loop_of_sessions(tmp_path: Path) -> None:
    translated = translate(["run", written(tmp_path, SESSIONS)])
    (scenario,) = translated.trial.workload.scenarios
    assert (scenario.loops, len(scenario.steps), requests(scenario.steps)[0].repeat) == (50, 1, 1)
    load = opened(translated)
    assert load.session == "user"
    assert [(p.duration_s, p.from_per_s, p.to_per_s) for p in load.phases] == [(1, 5, 5)]
    assert load.max_users == 100


def test_phases(tmp_path: Path) -> None:
    load = opened(script(tmp_path, """\
config:
  target: http://h
  phases:
    - {duration: 1m, arrivalRate: 10, rampTo: 50, name: up, maxVusers: 7}
    - {pause: 5}
    - {duration: 20, arrivalCount: 100, maxVusers: 7}
scenarios: [{flow: [{get: {url: /}}]}]
"""))  # fmt: skip
    assert [(p.duration_s, p.from_per_s, p.to_per_s) for p in load.phases] == [
        (60, 10, 50), (5, 0, 0), (20, 5, 5),
    ]  # fmt: skip
    assert load.max_users == 7
    assert {phase.max_users for phase in load.phases} == {None}


@pytest.mark.parametrize(("phase", "arrivals"), [("", "poisson"), (", mode: uniform", "constant")])
def test_the_mode_of_all_phases(tmp_path: Path, phase: str, arrivals: str) -> None:
    text = (
        f"config:\n  target: http://h\n  mode: poisson\n  phases: [{{duration: 9, arrivalRate: 1{phase}}}]\n"
        "scenarios: [{flow: [{get: {url: /}}]}]\n"
    )
    assert opened(script(tmp_path, text)).arrivals == arrivals


def test_places_that_differ_between_phases(tmp_path: Path) -> None:
    load = opened(script(tmp_path, """\
config:
  target: http://h
  phases:
    - {duration: 10, arrivalRate: 100, maxVusers: 7}
    - {pause: 5}
    - {duration: 10, arrivalRate: 100}
    - {duration: 10, arrivalRate: 100, maxVusers: 9}
scenarios: [{flow: [{get: {url: /}}]}]
"""))  # fmt: skip
    assert [phase.max_users for phase in load.phases] == [7, None, None, 9]
    assert load.max_users == 3001


def test_environment_target_variables_and_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", "from-env")
    text = """\
config:
  target: http://one
  variables: {a: 1, b: "{{ $env.WORD }}"}
  environments:
    fast: {target: "http://two:81", phases: [{duration: 2, arrivalRate: 9}]}
scenarios: [{flow: [{get: {url: "/{{ a }}/{{ b }}/{{ $environment }}"}}]}]
"""
    plain = script(tmp_path, text, "-v", '{"a": 5}')
    assert plain.target.url == "http://one:80"
    assert requests(plain.trial.workload.scenarios[0].steps)[0].path == "/5/from-env/undefined"
    fast = script(tmp_path, text, "--environment=fast", "--overrides", '{"config": {"timeout": 3}}')
    assert fast.target.url == "http://two:81"
    assert opened(fast).highest_per_s == 9
    assert fast.trial.request_timeout_ms == 3000
    assert script(tmp_path, text, "-thttp://three").target.host == "three"
    assert noted(script(tmp_path, text, "-e", "nowhere").notes, "no_environment", "nowhere")


def test_weights_and_variables_drawn_from_lists(tmp_path: Path) -> None:
    workload = script(tmp_path, f"""{HEAD}  variables: {{kind: [red, blue], other: [1, 2, 3]}}
scenarios:
  - {{name: a, weight: 3, flow: [{{get: {{url: "/{{{{ kind }}}}/{{{{ kind }}}}"}}}}]}}
  - {{name: b, flow: [{{get: {{url: /}}}}]}}
""").trial.workload  # fmt: skip
    first, second = workload.scenarios
    assert [(s.name, s.weight) for s in workload.scenarios] == [("a", 3), ("b", 1)]
    assert first.variables == {"drawn_kind": "${list_kind.value}"}
    assert requests(first.steps)[0].path == "/base/${drawn_kind | text}/${drawn_kind | text}"
    assert second.variables == {}
    assert list(workload.feeders) == ["list_kind"]
    assert workload.feeders["list_kind"].rows == (('"red"',), ('"blue"',))


def test_lists_of_which_something_has_to_be_known_before_the_run(tmp_path: Path) -> None:
    config = "  variables: {kind: [red, blue], wait: [1, 2]}\n"
    workload = script(tmp_path, f"""{HEAD}{config}scenarios:
  - {{name: a, weight: 4, flow: [{{get: {{url: "/{{{{ kind }}}}"}}}}, {{think: "{{{{ wait }}}}"}}]}}
""").trial.workload  # fmt: skip
    assert [(s.name, s.weight, requests(s.steps)[0].path) for s in workload.scenarios] == [
        ("a", 0.25, "/base/red"), ("a (2)", 0.25, "/base/red"), ("a (3)", 0.25, "/base/blue"),
        ("a (4)", 0.25, "/base/blue"),
    ]  # fmt: skip
    assert workload.feeders == {}
    many = "  variables: {wait: [" + ", ".join(map(str, range(300))) + "]}\n"
    with refuses("limit", "256"):
        flow(tmp_path, "- think: '{{ wait }}'\n- get: {url: /}", many)


def test_payload(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\n2,Bob\n", encoding="utf-8")
    config = "  payload: {path: people.csv, fields: [number, who], order: sequence, skipHeader: true}\n"
    (step,) = flow(
        tmp_path, "- post: {url: '/{{ number }}', json: {n: '{{ number }}', w: '{{ who }}'}}", config
    )
    assert step.path == "/base/${payload1.id}"
    assert step.body == '{"n":${payload1.id},"w":"${payload1.name | json}"}'


def test_captures_matches_and_expectations(tmp_path: Path) -> None:
    steps = flow(tmp_path, """\
- get:
    url: /x
    capture:
      - {json: "$.a['b c'][0].d", as: one}
      - {regexp: '{"id=(\\d+)', group: 1, as: two, strict: false}
      - {header: etag, as: uuid}
    match: {json: $.ok, value: true}
    expect: [{statusCode: [200, 201]}, {contentType: json}, {hasHeader: etag}, {hasProperty: a.b}]
- get: {url: '/{{ one }}/{{ two }}/{{ uuid }}'}""", "  plugins: {expect: {}}\n")  # fmt: skip
    first = steps[0]
    assert first.expect is not None
    assert first.capture["one"].json_pointer == "/a/b c/0/d"
    assert (first.capture["two"].regex, first.capture["two"].group, first.capture["two"].default) == (
        '\\{"id=(\\d+)', 1, "",
    )  # fmt: skip
    assert first.expect.status == (200, 201)
    assert first.expect.headers == {"etag": ""}
    assert first.expect.head_matches == (header_patterns.JSON_TYPE,)
    assert first.expect.json_matches == {"": json_patterns.STRUCTURE}
    assert (first.expect.json_values, first.expect.json_exists) == ({"/ok": True}, ("/a/b",))
    (other,) = flow(
        tmp_path, "- get: {url: /, expect: [{notStatusCode: [500, 404]}]}", "  plugins: {expect: {}}\n"
    )
    assert other.expect is not None
    assert set(range(200, 600)) - set(other.expect.status) == {404, 500}
    assert "accept-encoding" not in first.headers
    assert steps[1].path == "/base/${one}/${two}/${c_uuid}"


def test_conditions_that_are_known_before_the_run(tmp_path: Path) -> None:
    steps = flow(tmp_path, """\
- loop:
    - get: {url: '/{{ $loopCount }}', ifTrue: '$loopCount > 1 and n == 7'}
  count: 4""", "  variables: {n: 7}\n")  # fmt: skip
    assert [step.path for step in steps] == ["/base/2", "/base/3"]


def plain(found: tuple[Entry, ...]) -> list[object]:
    """Blocks as they stand in a plan, requests as their paths."""

    def one(entry: Entry) -> object:
        if isinstance(entry, Step):
            pause = "" if entry.think is None else f" {entry.think.ms:g} ms"
            return entry.path + (f" x{entry.repeat}" if entry.repeat != 1 else "") + pause
        keys = entry.engine_keys()
        return {**keys, "steps": plain(entry.steps)} if entry.steps else keys

    return [one(entry) for entry in found]


def test_thinks_wherever_they_stand(tmp_path: Path) -> None:
    assert plain(entries(tmp_path, """\
- think: 1
- get: {url: /a}
- think: 500ms
- think: 1
- loop:
    - get: {url: /b}
  count: 3
- think: 2""")) == [
        {"pause": {"kind": "constant", "ms": 1000.0}}, "/base/a 1500 ms", "/base/b x3",
        {"pause": {"kind": "constant", "ms": 2000.0}},
    ]  # fmt: skip


def test_probability_is_drawn_as_artillery_draws_it(tmp_path: Path) -> None:
    found = entries(tmp_path, """\
- post: {url: /a, capture: {json: $.x, as: x}}
- get: {url: /b, probability: 30}
- get: {url: /c, probability: 0}
- get: {url: /d, probability: 100, ifTrue: x == 'y'}""")  # fmt: skip
    drawn = {"left": "${random int 0 100}", "op": "<"}
    asked = {"left": "${x}", "op": "==", "right": "y"}
    assert plain(found) == [
        "/base/a", {"if": drawn | {"right": "30"}, "steps": ["/base/b"]},
        {"if": {"all": [drawn | {"right": "100"}, asked]}, "steps": ["/base/d"]},
    ]  # fmt: skip


def test_long_loops_are_loops_of_the_plan(tmp_path: Path) -> None:
    found = entries(tmp_path, """\
- get: {url: /first}
- loop:
    - post: {url: '/{{ $loopCount }}', json: {n: '{{ $loopCount }}'}, ifTrue: $loopCount < 7}
    - loop:
        - get: {url: '/{{ word }}/{{ turn }}'}
      over: [a, b]
      loopElement: word
      loopValue: turn
  count: 5-6000
- loop:
    - get: {url: /x}
    - think: 1
    - get: {url: /y}
  count: 9""")  # fmt: skip
    first, counted, equal = found
    assert plain((first, equal)) == [
        "/base/first", {"loop": {"count": 9}, "steps": ["/base/x 1000 ms", "/base/y"]},
    ]  # fmt: skip
    assert isinstance(counted, Block)
    assert counted.loop is not None
    assert counted.loop.over is not None
    assert counted.loop.over[0] == "5"
    assert len(counted.loop.over) == 5995
    asked, *inner = counted.steps
    assert isinstance(asked, Block)
    (post,) = asked.steps
    assert isinstance(post, Step)
    assert (post.path, post.body) == ("/base/${loop_element_1}", '{"n":${loop_element_1}}')
    assert plain((asked,)) == [
        {"if": {"left": "${loop_element_1}", "op": "<", "right": "7"}, "steps": [post.path]}
    ]
    assert plain(tuple(inner)) == ["/base/a/0", "/base/b/1"]


def test_conditions_on_columns(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("kind\nred\nblue\n", encoding="utf-8")
    config = "  payload: {path: p.csv, fields: [kind], skipHeader: true}\n"
    (block,) = entries(tmp_path, "- get: {url: /, ifTrue: kind == 'red'}", config)
    assert isinstance(block, Block)
    assert block.condition is not None
    assert plain((block,)) == [
        {"if": {"left": "${payload1.kind}", "op": "==", "right": "red"}, "steps": ["/base/"]}
    ]


def test_literal_placeholders_of_the_plan_model_stay_text(tmp_path: Path) -> None:
    (step,) = flow(tmp_path, "- post: {url: '/a${b}', body: 'x ${y}', headers: {h: '${z}'}}")
    assert (step.path, step.body, step.headers["h"]) == ("/base/a$%7Bb%7D", "x $${y}", "$${z}")


@pytest.mark.parametrize(
    ("line", "code", "named"),
    [
        ("- post: {url: /, formData: {a: {path: b}}}", "unsupported", ("formData", "'path'", "fromFile")),
        ("- get: {url: /, capture: {xpath: //a, as: b}}", "unsupported", ("'xpath'", "selector")),
        ("- get: {url: /, capture: {json: '$.a[?(@.b)]', as: b}}", "unsupported", ("JSONPath", "[?(@.b)]")),
        ("- get: {url: /, capture: {json: '$.a[-1]', as: b}}", "unsupported", ("JSONPath", "[-1]", "slices")),
        ("- get: {url: /, match: {json: '$..a', value: 1}}", "unsupported", ("JSONPath", "$.list[0].name")),
        ("- get: {url: /, capture: {regexp: '(?=a)', as: b}}", "unsupported", ("regexp", "look-around")),
        ("- {loop: [{get: {url: /}}], whileTrue: f}", "endless", ("whileTrue: f", "count")),
        ("- {loop: [{get: {url: /}}]}", "unsupported", ("loop", "count")),
        ("- get: {url: /, ifTrue: 'token > 3'}", "undefined", ("ifTrue", "'token'")),
        ("- post: {url: /, body: '${{ $randomNumber(1, 2) }}'}", "unsupported", ("$ ", "{{")),
    ],
)  # fmt: skip
def test_what_is_not_done_is_refused_with_its_line(
    tmp_path: Path, line: str, code: Reason, named: tuple[str, ...]
) -> None:
    with refuses(code, *named, line=7):
        flow(tmp_path, f"- get: {{url: /first}}\n{line}")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("  plugins: {fuzzer: {}}\n", "the plugin 'fuzzer' is not supported"),
        ("  http: {cookieJarOptions: {}}\n", "config.http.cookieJarOptions is not supported"),
        ("  payload: {path: no.csv, fields: [a]}\n", "expected a CSV file that can be read"),
        ("  timeout: '{{ $env.NO_SUCH_WORD_HERE }}'\n", "set the environment variable"),
        ("  timeout: never\n", "s.yml:4: found 'never'; expected seconds above 0"),
    ],
)  # fmt: skip
def test_a_config_that_cannot_be_done(tmp_path: Path, config: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        flow(tmp_path, "- get: {url: /}", config)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "no command"),
        (["quick", "http://h"], "the command 'quick' is not supported"),
        (["run"], "no script"),
        (["run", "--record", "s.yml"], "--record is not supported"),
        (["run", "--count", "4", "s.yml"], "--client-cpus"),
        (["run", "--platform=aws:lambda", "s.yml"], "run it on this host"),
        (["run", "--nonsense", "s.yml"], "unknown flag --nonsense"),
        (["run", "-v", "{", "s.yml"], "--variables: invalid JSON"),
        (["run", "no-such-file.yml"], "no-such-file.yml: cannot be read"),
    ],
)  # fmt: skip
def test_command_lines_that_are_refused(argv: list[str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        translate(argv)
    assert said in str(refused.value)


def test_the_help_has_every_flag() -> None:
    words = re.findall(r"-[\w-]+", USAGE)
    assert {*VALUES, *SWITCHES} <= set(words)
