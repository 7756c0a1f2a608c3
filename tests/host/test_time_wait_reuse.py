"""How long a port stays taken depends on net.ipv4.tcp_tw_reuse and on where the target is."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.host.resource_limits import limits, time_wait_reuse


def tree(root: Path, mode: str, stamps: str = "1") -> Path:
    folder = root / "proc/sys/net/ipv4"
    folder.mkdir(parents=True)
    (folder / "tcp_tw_reuse").write_text(mode + "\n")
    (folder / "tcp_timestamps").write_text(stamps + "\n")
    return root


@pytest.mark.parametrize(
    ("mode", "target", "expected"),
    [
        ("0", "127.0.0.1", False),
        ("1", "192.0.2.1", True),
        ("2", "127.0.0.1", True),
        ("2", "192.0.2.1", False),
    ],
)
def test_by_mode_and_target(tmp_path: Path, mode: str, target: str, expected: bool) -> None:
    assert time_wait_reuse((target, 80), tree(tmp_path, mode)) is expected


def test_without_timestamps_there_is_no_reuse(tmp_path: Path) -> None:
    assert time_wait_reuse(("127.0.0.1", 80), tree(tmp_path, "1", stamps="0")) is False


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    assert time_wait_reuse(("127.0.0.1", 80), tmp_path) is None
    assert limits(None).time_wait_reuse is None
