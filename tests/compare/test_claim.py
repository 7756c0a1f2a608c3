"""prony/compare/claim.py: which claim holds of an interval, and what settles an open one."""

from __future__ import annotations

import math

import pytest

from prony.compare.bias import Source
from prony.compare.claim import MARGINS, Claim, Ends, Margins, claim_of, settles
from prony.compare.ratio import RatioResult, ratio

LEVEL, BLOCK_S = 0.05, 60.0


@pytest.mark.parametrize(
    ("window", "later", "least", "claim"),
    [
        ((1.02, 1.4), (1.011, 1.5), 0.01, Claim.SHOWN),
        ((1.02, 1.4), (1.009, 1.5), 0.01, Claim.SHOWN_FOR_WINDOW),
        ((1.02, 1.4), None, 0.01, Claim.SHOWN_FOR_WINDOW),
        ((1.009, 1.4), None, 0.01, Claim.OPEN),
        ((1.009, 1.4), None, 0.0, Claim.SHOWN_FOR_WINDOW),
        ((1.09, 1.4), None, 0.1, Claim.OPEN),
        ((1 / 1.4, 1 / 1.11), None, 0.1, Claim.SHOWN_FOR_WINDOW),
        ((1.005, 1.015), None, 0.01, Claim.EQUIVALENT),
        ((1.005, 1.04), None, 0.01, Claim.EQUIVALENT),
        ((None, 0.8), None, 0.01, Claim.SHOWN_FOR_WINDOW),
        ((None, None), None, 0.01, Claim.OPEN),
    ],
)
def test_which_claim_holds(window: Ends, later: Ends | None, least: float, claim: Claim) -> None:
    assert claim_of(window, later, Margins(least=least)) is claim


def noisy(middle: float, sd: float) -> RatioResult:
    """Of two servers whose ratio is `middle`, over six trials each."""
    off = [math.exp(sd * z) for z in (-1.2, -0.7, -0.2, 0.3, 0.8, 1.0)]
    return ratio([1000 * middle * one for one in off], [1000.0 / one for one in off])


def what(found: RatioResult, *bends: Source, least: float = 0.01) -> str | None:
    made = settles(found, bends, LEVEL, Margins(least=least), BLOCK_S)
    return None if made is None else made.what


def test_noise_is_settled_by_blocks_and_a_larger_difference_needs_fewer() -> None:
    near = settles(noisy(1.06, 0.05), (), LEVEL, MARGINS, BLOCK_S)
    far = settles(noisy(1.10, 0.05), (), LEVEL, MARGINS, BLOCK_S)
    assert near is not None
    assert far is not None
    assert (near.what, far.what) == ("blocks", "blocks")
    assert (near.blocks or 0) > (far.blocks or 0) > 0
    assert near.seconds == pytest.approx(BLOCK_S * (near.blocks or 0))


def test_a_source_as_large_as_the_difference_is_named() -> None:
    assert what(noisy(1.10, 0.02), Source("isolation", 0.10, 0.10)) == "isolation"
    assert what(noisy(1.10, 0.02), Source("isolation", math.inf, 0.0)) == "isolation"
    assert what(noisy(1.10, 0.02), Source("isolation", 0.0, 0.10)) == "blocks", "it works for the claim"


def test_servers_that_are_alike_may_be_settled_as_such() -> None:
    assert what(noisy(1.002, 0.05), Source("isolation", 0.01, 0.01)) == "blocks"
    assert what(noisy(1.002, 0.05), Source("isolation", 0.06, 0.06)) == "isolation"


def test_of_a_margin_that_the_difference_does_not_reach_nothing_settles() -> None:
    assert what(noisy(1.07, 0.02), least=0.1) is None
