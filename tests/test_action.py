"""action.yml and the workflows of docs/ci.md: they parse, name options that exist, end as the gate does."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from prony.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
GATE_MD = "### Prony gate\n\n![changes](gate.svg)\n\n| figure |\n"
FAKE = """#!/bin/bash
printf '%s\\n' "$@" > "$FAKE_WORDS"
while [ $# -gt 0 ]; do [ "$1" = --markdown ] && printf '{text}' > "$2"; shift; done
exit $FAKE_CODE
"""


def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return loaded


def gate_step() -> dict[str, Any]:
    return next(step for step in action()["runs"]["steps"] if step.get("id") == "gate")


def ran(
    tmp_path: Path, code: int, **inputs: str
) -> tuple[subprocess.CompletedProcess[str], list[str], str, str]:
    """The step's script with a `prony` that ends so: how it ended, the words, the outputs, the summary."""
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    fake = programs / "prony"
    fake.write_text(FAKE.replace("{text}", GATE_MD.replace("\n", "\\n")))
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    defaults = {name: str(one.get("default", "")) for name, one in action()["inputs"].items()}
    given = defaults | inputs
    step = gate_step()
    named = {
        variable: given[re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", r"\1", value)]
        for variable, value in step["env"].items()
    }
    outputs, summary = tmp_path / "outputs", tmp_path / "summary"
    for file in (outputs, summary):
        file.write_text("")
    environment = (
        os.environ
        | named
        | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_STEP_SUMMARY": str(summary),
            "FAKE_WORDS": str(tmp_path / "words"),
            "FAKE_CODE": str(code),
        }
    )
    script = tmp_path / "step.sh"
    script.write_text(step["run"])
    # As a runner calls it.
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done, (tmp_path / "words").read_text().splitlines(), outputs.read_text(), summary.read_text()


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(0, "no worse"), (3, "not measurable"), (4, "failed"), (7, "worse"), (8, "cannot tell")],
)
def test_the_action_ends_as_the_gate_does(tmp_path: Path, code: int, outcome: str) -> None:
    done, _, outputs, summary = ran(tmp_path, code, base="./base", candidate="./candidate")
    assert done.returncode == code, done.stderr
    assert f"outcome={outcome}\nexit-code={code}\n" in outputs
    assert summary == "### Prony gate\n\n\n| figure |\n"


def test_a_gate_that_cannot_tell_may_be_a_warning(tmp_path: Path) -> None:
    done, *_ = ran(tmp_path, 8, base="b", candidate="c", undecided="warn")
    assert done.returncode == 0
    assert "::warning title=Prony gate::" in done.stdout
    worse, *_ = ran(tmp_path, 7, base="b", candidate="c", undecided="warn")
    assert worse.returncode == 7


def test_inputs_are_words_and_never_a_part_of_the_script(tmp_path: Path) -> None:
    evil = '"; touch owned; echo "$(touch owned)'
    _, words, *_ = ran(tmp_path, 0, base=evil, candidate="c", options="--users 8\n--window 5s")
    assert words[:3] == ["gate", evil, "c"]
    assert words[-4:] == ["--users", "8", "--window", "5s"]
    assert not (tmp_path / "owned").exists()
    assert "${{" not in gate_step()["run"]


def test_a_baseline_takes_the_place_of_the_base(tmp_path: Path) -> None:
    _, words, *_ = ran(tmp_path, 0, baseline="main", candidate="c")
    assert words[:4] == ["gate", "--baseline", "main", "c"]


@pytest.mark.parametrize("wheel", ["", "prony-1.0-py3-none-manylinux_2_28_x86_64.whl"])
def test_prony_is_installed_from_a_wheel_or_from_the_source(tmp_path: Path, wheel: str) -> None:
    (step,) = (one for one in action()["runs"]["steps"] if one["name"] == "Install Prony")
    assert step["env"] == {"PRONY_WHEEL": "${{ inputs.wheel }}"}
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "python3"
    fake.write_text(
        '#!/bin/bash\nmkdir -p "$3/bin"\n'
        f'printf \'#!/bin/bash\\necho "$@" > {tmp_path}/words\\n\' > "$3/bin/pip"\n'
        'chmod +x "$3/bin/pip"\n'
    )
    fake.chmod(0o755)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={
            "PATH": f"{programs}:/usr/bin:/bin", "PRONY_WHEEL": wheel, "RUNNER_TEMP": str(tmp_path),
            "GITHUB_ACTION_PATH": "/the/action", "GITHUB_PATH": str(tmp_path / "path"),
        },
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "words").read_text().split() == ["install", "--quiet", wheel or "/the/action"]
    assert (tmp_path / "path").read_text() == f"{tmp_path}/prony/bin\n"


def known_options() -> set[str]:
    command = typer.main.get_command(app).commands["gate"]  # type: ignore[attr-defined]
    return {option for one in command.real().params for option in one.opts}


def test_every_option_that_the_page_and_the_action_use_exists() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    calls = re.findall(r"prony gate [^\n`']*", page) + re.findall(r"--[a-z-]+", gate_step()["run"])
    named = {option for call in calls for option in re.findall(r"--[a-z][a-z-]+", call)}
    assert len(named) >= 6
    assert named <= known_options()


def test_the_workflows_of_the_page_parse() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    workflow = next(one for one in blocks if isinstance(one, dict) and one.get("name") == "gate")
    (used,) = [step for step in workflow["jobs"]["gate"]["steps"] if "prony" in step.get("uses", "")]
    assert set(used["with"]) <= set(action()["inputs"])
    assert any(isinstance(one, dict) and "gate" in one and "script" in one["gate"] for one in blocks)
