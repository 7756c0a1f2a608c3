"""TCP sockets of this network namespace: the sums of `ss -s`, and counts by state."""

from __future__ import annotations

from pathlib import Path

from prony.host import diag
from prony.host.proc import ROOT, read_text

DUMP_LIMIT = 100_000
"""Most sockets for a full dump, to spare the client's CPU; beyond, only the sums."""


def socket_sums(root: Path = ROOT) -> dict[str, int] | None:
    """`total`, `established`, `closed`, `orphaned`, `time_wait` as in `ss -s`; None when unreadable.

    From three counter files, at a constant cost. `total` and `orphaned` cover all network namespaces.
    `established` includes CLOSE_WAIT (tcpCurrEstab, RFC 4022).
    """
    tcp = _counters(root, "sockstat", "TCP")
    if tcp is None or "alloc" not in tcp:
        return None
    tcp6 = _counters(root, "sockstat6", "TCP6") or {}
    time_wait = tcp.get("tw", 0)
    hashed = tcp.get("inuse", 0) + tcp6.get("inuse", 0)
    sums = {
        "total": tcp["alloc"] + time_wait,
        "closed": max(0, tcp["alloc"] - (hashed - time_wait)),
        "orphaned": tcp.get("orphan", 0),
        "time_wait": time_wait,
    }
    established = _current_established(root)
    if established is not None:
        sums["established"] = established
    return dict(sorted(sums.items()))


def sockets(root: Path = ROOT) -> dict[str, int]:
    """The sums of `socket_sums` and, up to DUMP_LIMIT, every occupied state from sock_diag, which then also
    gives `established` and `time_wait`. Empty when unreadable.
    """
    sums = socket_sums(root) or {}
    if root != ROOT or sums.get("total", 0) > DUMP_LIMIT:
        return sums
    states = diag.count_by_state()
    if states is None:
        return sums
    exact = {state: states.get(state, 0) for state in ("established", "time_wait")}
    return dict(sorted((sums | states | exact).items()))


def _counters(root: Path, file: str, label: str) -> dict[str, int] | None:
    for line in (read_text(root / "proc/net" / file) or "").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if name == label:
            pairs = zip(words[::2], words[1::2], strict=False)
            return {key: int(value) for key, value in pairs if value.isdecimal()}
    return None


def _current_established(root: Path) -> int | None:
    names: list[str] | None = None
    for line in (read_text(root / "proc/net/snmp") or "").splitlines():
        if line.startswith("Tcp:"):
            if names is None:
                names = line.split()
            else:
                value = dict(zip(names, line.split(), strict=False)).get("CurrEstab")
                return int(value) if value is not None and value.isdecimal() else None
    return None
