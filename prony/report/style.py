"""Terminal styles of what a finding does to a result."""

from __future__ import annotations

from prony.judge.finding import Kind

KIND_STYLE = {
    Kind.NOT_CONFORMING: "bold red",
    Kind.BUDGET: "yellow",
    Kind.PROVIDED: "cyan",
    Kind.FINE: "green",
}
KIND_WORDS = {
    Kind.NOT_CONFORMING: "does not conform",
    Kind.BUDGET: "budget",
    Kind.PROVIDED: "provided that",
    Kind.FINE: "conforms",
}
