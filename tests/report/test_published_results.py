"""What docs/results holds: each file can be imported and is judged as its page says, and each text prints the
figures of its file.

After a change of what the judge finds: `prony results import`, `rejudge`, `publish` (CONTRIBUTING.md).
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from prony.experiment.conclude import rejudge
from prony.judge.finding import Finding, Kind
from prony.plan.planfile_read import known
from prony.report.answer import answer
from prony.report.blocks import KIND_WORDS
from prony.report.reading import load_exported
from prony.store import Store, transfer
from prony_serve.publish import anonymous
from prony_serve.publish.figures import BEGIN, END, text
from tests.report.page import Page

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(one for one in (ROOT / "docs" / "results").iterdir() if (one / "results.prony").is_file())
FIGURE = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+)(?![\w.]*\d)")
"""A number with a separator of thousands or a decimal point, and no version."""

WORDING = ("assumption", "limit", "reason", "advice", "source")
WORDS = {KIND_WORDS[Kind.FINE]: True, KIND_WORDS[Kind.NOT_CONFORMING]: False}
"""As the page says whether a trial conforms."""


def found(finding: Finding | None) -> object:
    """What of a finding a page must agree with: not its words; nothing where all is well."""
    if finding is None or (finding.kind is Kind.FINE and not finding.plateau):
        return None
    plain = finding.model_copy(
        update={"provided": bool(finding.provided), **dict.fromkeys(WORDING, "")},
    )
    return rounded(plain.model_dump(warnings=False))


def rounded(value: object) -> object:
    """To eight digits: quantiles are found by steps."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return float(f"{value:.8g}") if isinstance(value, float) else value


def halves(folder: Path) -> tuple[str, str]:
    """What an author wrote and what the command wrote."""
    page = (folder / "README.md").read_text(encoding="utf-8")
    before, rest = page.split(f"{BEGIN}\n")
    block, after = rest.split(END)
    return before + after, block


def section(name: str) -> str:
    """Of docs/experiments.md, that of an experiment."""
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    (found,) = (one for one in page.split("\n## ") if f"(results/{name}/README.md)" in one)
    return found


def printed_beside(folder: Path) -> set[str]:
    """The figures of all folders that the section of this one names: the parts of one plan."""
    words = section(folder.name)
    names = [one.name for one in FOLDERS if f"(results/{one.name}/README.md)" in words]
    return {figure for name in names for figure in FIGURE.findall(halves(folder.parent / name)[1])}


def test_every_folder_is_of_a_plan_and_no_page_is_missing() -> None:
    assert FOLDERS
    for folder in FOLDERS:
        view = load_exported(folder / "results.prony")
        parts = {part.part.name for part in view.parts if part.cells}
        names = {view.plan.name, *(f"{view.plan.name}-{part}" for part in parts)}
        assert view.plan.name in known()
        assert folder.name in names, "the name of its plan, and of its part where there is a folder for each"
        assert {"README.md", "report.html", "results.prony"} == {one.name for one in folder.iterdir()}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.rarely
def test_it_is_judged_again_as_its_page_says(folder: Path, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "results.db")
    identifier, trials = transfer.read(store, folder / "results.prony")
    again = rejudge(store, identifier, {})
    assert len(again) == trials
    differing = {
        one.record.id: (one.figures_changed, *differ)
        for one in again
        if (differ := [each for each in one.changes if found(each.before) != found(each.after)])
        or one.figures_changed
    }
    assert differing == {}, "see the head of this file"
    shown: dict[str, bool] = {}
    began = ""
    for cell in Page((folder / "report.html").read_text("utf-8")).all("td"):
        text = cell.text.strip()
        if re.fullmatch(r"[\d:]{8}", text):
            began = text
        elif began and (word := text.partition(",")[0]) in WORDS:
            shown[began], began = WORDS[word], ""
    judged = {  # the page's table of trials has no explained ones
        f"{one.record.started_at:%H:%M:%S}": one.record.failure is None and one.after.conforms
        for one in again
        if one.record.kind != "explained"
    }
    assert shown == judged


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_text_prints_the_figures_of_its_file(folder: Path) -> None:
    view = load_exported(folder / "results.prony")
    own, block = halves(folder)
    assert block == text(view)
    page = (folder / "report.html").read_text("utf-8")
    assert f"Experiment {view.id}." in page
    assert answer(view).conforming in page
    both = (
        ("README.md", own, set(FIGURE.findall(block))),
        ("docs/experiments.md", section(folder.name), printed_beside(folder)),
    )
    for where, words, printed in both:
        plain = re.sub(r"`[^`]*`", "", words)
        assert set(FIGURE.findall(plain)) - printed == set(), f"figures of {where} that the file has not"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_it_does_not_say_who_measured(folder: Path) -> None:
    everything = gzip.decompress((folder / "results.prony").read_bytes()).decode()
    for file in ("README.md", "report.html"):
        everything += " ".join((folder / file).read_text("utf-8").split())
    assert re.findall(r".{0,32}\(pid \d+\)", everything) == [], "programs beside the measurement"
    shares = re.findall(r"(.{0,32}), [\d.]+ ?% of one CPU", everything)
    assert {share[-len(anonymous.ANOTHER) :] for share in shares} <= {anonymous.ANOTHER}
    assert re.findall(r"(?<![\w.~/-])/(?:root|home/\w+|Users/\w+)/[^\s\"\\]*", everything) == []
    assert set(re.findall(r'\\"hostname\\": ?\\"([^"\\]*)', everything)) == {
        f"host-{load_exported(folder / 'results.prony').fingerprint.key[:6]}"  # type: ignore[union-attr]
    }
