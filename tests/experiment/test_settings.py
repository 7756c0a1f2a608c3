"""Kernel settings that were changed between two blocks are said of every trial after that."""

from prony.experiment.trials import with_settings
from prony.judge.checks.host import HostLimits, host
from tests.judge.factory import healthy, part


def test_a_change_between_blocks_is_reported() -> None:
    later = with_settings(healthy(), ("net.core.somaxconn",))
    finding = host(later, HostLimits())
    assert (finding.conforms, finding.code, bool(finding.provided)) == (True, "changed", True)
    assert "net.core.somaxconn" in finding.reason
    both = with_settings(part(healthy(), "host_window", sysctls_changed=("vm.swappiness",)), ("a",))
    assert both.host_window is not None
    assert both.host_window.sysctls_changed == ("a", "vm.swappiness")


def test_nothing_changed_or_nothing_read() -> None:
    assert with_settings(healthy(), ()) == healthy()
    unread = part(healthy(), "host_window", sysctls_changed=None)
    assert with_settings(unread, ("a",)) == unread
