"""Metric families as text, in both formats."""

from __future__ import annotations

import math

from prony_serve.metrics.exposition import (
    CLASSIC,
    OPENMETRICS,
    Family,
    Sample,
    classic,
    negotiated,
    openmetrics,
)

ODD = {"server": 'a"b\\c\nd'}
FAMILIES = (
    Family("prony_requests_sent", "counter", "Requests\nsent", (Sample(12, ODD),)),
    Family("prony_lag_seconds", "gauge", "Lag", (Sample(0.25, {}, at_s=1_700_000_000.5),)),
    Family(
        "prony_time_seconds",
        "summary",
        "Times",
        (Sample(0.001, {"quantile": "0.5"}), Sample(3.5, {}, "_sum"), Sample(100, {}, "_count")),
    ),
    Family("prony_build", "info", "Build", (Sample(1, {"version": "1"}),)),
    Family("prony_nothing", "gauge", "Left out", ()),
)


def test_openmetrics() -> None:
    assert "".join(openmetrics(FAMILIES)) == (
        "# TYPE prony_requests_sent counter\n"
        "# HELP prony_requests_sent Requests\\nsent\n"
        'prony_requests_sent_total{server="a\\"b\\\\c\\nd"} 12\n'
        "# TYPE prony_lag_seconds gauge\n"
        "# UNIT prony_lag_seconds seconds\n"
        "# HELP prony_lag_seconds Lag\n"
        "prony_lag_seconds 0.25 1700000000.500\n"
        "# TYPE prony_time_seconds summary\n"
        "# UNIT prony_time_seconds seconds\n"
        "# HELP prony_time_seconds Times\n"
        'prony_time_seconds{quantile="0.5"} 0.001\n'
        "prony_time_seconds_sum 3.5\n"
        "prony_time_seconds_count 100\n"
        "# TYPE prony_build info\n"
        "# HELP prony_build Build\n"
        'prony_build_info{version="1"} 1\n'
        "# EOF\n"
    )


def test_the_older_format_names_counters_with_their_suffix_and_has_times_in_ms() -> None:
    text = "".join(classic(FAMILIES))
    assert "# TYPE prony_requests_sent_total counter\n" in text
    assert "prony_lag_seconds 0.25 1700000000500\n" in text
    assert "# TYPE prony_build_info gauge\n" in text
    assert "# UNIT" not in text
    assert "# EOF" not in text


def test_numbers_that_json_has_not() -> None:
    values = (math.nan, math.inf, -math.inf, 1e300, 2.0)
    family = Family("x", "gauge", "x", tuple(Sample(value, {}) for value in values))
    lines = "".join(classic([family])).splitlines()[2:]
    assert [line.split()[1] for line in lines] == ["NaN", "+Inf", "-Inf", "1e+300", "2"]


def test_a_scraper_gets_the_format_that_it_asks_for() -> None:
    prometheus = "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    assert negotiated(prometheus) == (OPENMETRICS, True)
    assert negotiated("*/*") == (CLASSIC, False)
    assert negotiated("") == (CLASSIC, False)
