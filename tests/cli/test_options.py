"""What a user typed: accepted in the usual forms, refused in one sentence otherwise."""

from pathlib import Path

import pytest

from prony.cli import options
from prony.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected_s"),
    [("30", 30), ("30s", 30), ("1.5m", 90), ("2h", 7200), ("500ms", 0.5), (" 2 min ", 120)],
)
def test_times(text: str, expected_s: float) -> None:
    assert options.seconds(text, "--window") == pytest.approx(expected_s)


@pytest.mark.parametrize("text", ["", "-1", "abc", "1e9", "10x", "nan", "inf", "99999999h", "1 000"])
def test_absurd_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--window"):
        options.seconds(text, "--window")


def test_shares() -> None:
    assert options.share("1%", "--band") == pytest.approx(0.01)
    assert options.share(" 2.5 % ", "--band") == pytest.approx(0.025)
    assert options.share("0.03", "--band") == pytest.approx(0.03)


@pytest.mark.parametrize("text", ["", "0", "100%", "2", "-1%", "abc", "nan"])
def test_absurd_shares_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--band"):
        options.share(text, "--band")


@pytest.mark.parametrize("value", [0, -1, 1_000_001])
def test_users_out_of_range(value: int) -> None:
    with pytest.raises(UsageError, match=r"expected 1 to 1,000,000"):
        options.users(value)


@pytest.mark.parametrize("value", [0, -3, 10**9])
def test_trials_out_of_range(value: int) -> None:
    with pytest.raises(UsageError):
        options.trials(value)


def test_a_seed_is_drawn_when_none_is_given() -> None:
    assert len({options.seed(None) for _ in range(20)}) > 1
    assert options.seed(5) == 5
    with pytest.raises(UsageError):
        options.seed(-1)


def test_a_report_that_could_not_be_written_is_refused_before_measuring(tmp_path: Path) -> None:
    options.writable(tmp_path / "report.html")
    with pytest.raises(UsageError, match="is a folder"):
        options.writable(tmp_path)
    with pytest.raises(UsageError, match="no directory"):
        options.writable(tmp_path / "no" / "report.html")


def test_limits_from_words_and_files(tmp_path: Path) -> None:
    file, plan = tmp_path / "limits.yaml", tmp_path / "plan.yaml"
    file.write_text("errors_share_max: 0.05\nsteady_min_rows: 8\n")
    plan.write_text("title: x\nservers: a\nlimits: {little_deviation: 0.1}\n")
    assert options.limits(None) == {}
    assert options.limits(["little_deviation=0.02"]) == {"little_deviation": 0.02}
    assert options.limits([str(file), "errors_share_max=0.1", str(plan)]) == {
        "errors_share_max": 0.1,
        "steady_min_rows": 8,
        "little_deviation": 0.1,
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("litle_deviation=0.1", "unknown limit 'litle_deviation', did you mean 'little_deviation'"),
        ("little_deviation=7", "little_deviation is '7': .*less than or equal to 1"),
        ("little_deviation=much", "little_deviation is 'much': expected a number"),
        ("little_deviation=", "expected a number"),
        ("little_deviation=nan", "little_deviation is 'nan'"),
        ("steady_min_rows=7.5", "steady_min_rows is '7.5'"),
        ("nowhere.yaml", "nowhere.yaml: cannot be read"),
        ("bad.yaml", "bad.yaml:2: unknown key 'litle_deviation'"),
        ("worse.yaml", "worse.yaml:2: 'little_deviation' is 7"),
        ("list.yaml", "'limits' is not a mapping"),
    ],
)
def test_limits_that_make_no_sense_are_refused(
    given: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text("little_deviation: 0.1\nlitle_deviation: 0.1\n")
    Path("worse.yaml").write_text("limits:\n  little_deviation: 7\n")
    Path("list.yaml").write_text("limits: [1]\n")
    with pytest.raises(UsageError, match=said):
        options.limits([given])
