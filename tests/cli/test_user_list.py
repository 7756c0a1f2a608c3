"""The numbers of users of a sweep, as they are typed."""

import pytest

from prony.cli.sweep import user_list
from prony.errors import UsageError


def test_it_doubles_between() -> None:
    assert user_list("1,8,16…128") == (1, 8, 16, 32, 64, 128)
    assert user_list("16...100") == (16, 32, 64, 100)
    assert user_list("5, 3,3") == (3, 5)


@pytest.mark.parametrize("bad", ["", "0", "1,,2", "8…2", "a", "1…2…3", "-1", "1.5", "2000000"])
def test_others_are_refused(bad: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        user_list(bad)
