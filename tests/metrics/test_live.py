"""What a running measurement tells: counters that add up, gauges of the last row, the last trial's figures;
and a real Prometheus that scrapes a real load.
"""

from __future__ import annotations

import json
import math
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.engine import IntervalRow
from prony.judge.finding import Bias, Finding, Judgement
from prony_serve.metrics.endpoint import address, served
from prony_serve.metrics.exposition import classic, openmetrics
from prony_serve.metrics.live import LiveMetrics
from tests.e2e.conftest import Lab
from tests.programs import program


def row(t_s: float, *, in_window: bool = True, **more: Any) -> IntervalRow:
    known: dict[str, Any] = {
        "t_ms": t_s * 1000,
        "duration_ms": 1000,
        "in_window": in_window,
        "completed": 100,
    }
    return IntervalRow.model_validate(known | more)


def values(metrics: LiveMetrics) -> dict[str, float]:
    lines = "".join(classic(metrics.families())).splitlines()
    return {
        line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")
    }


def running() -> LiveMetrics:
    made = LiveMetrics()
    made.experiment_started(3, 60.0)
    made.stored_as("261122-abcd", "a vs b")
    made.trial_started(1, "tomcat", 0, 10)
    made.phase("warm-up", 10.0)
    made.row(row(1, in_window=False, sent=101, mean_ns=2e6, p50_ns=1_000_000))
    made.phase("window", 10.0)
    made.row(row(2, sent=100, failed=2, errors={"read": 2}, mean_ns=1e6, in_flight=7, client_cpu=0.5))
    errors = {"read": 1, "timeout": 4}
    last: dict[str, Any] = {
        "offered": 120,
        "send_lag_p99_ns": 250_000,
        "latency_p99_ns": 9_000_000,
        "in_flight": 9,
    }
    made.row(row(3, sent=100, failed=1, errors=errors, mean_ns=3e6, p50_ns=3_000_000, **last))
    return made


def test_counters_add_up_and_gauges_are_of_the_last_row() -> None:
    found = values(running())
    inside = '{server="tomcat",measured="true"}'
    assert found[f"prony_requests_completed_total{inside}"] == 200
    assert found['prony_requests_completed_total{server="tomcat",measured="false"}'] == 100
    assert found[f"prony_requests_sent_total{inside}"] == 200
    assert found[f"prony_requests_offered_total{inside}"] == 120
    assert found['prony_request_errors_total{server="tomcat",measured="true",kind="read"}'] == 3
    assert found['prony_request_errors_total{server="tomcat",measured="true",kind="timeout"}'] == 4
    assert found['prony_requests_in_flight{server="tomcat"}'] == 9
    assert found['prony_send_lag_p99_seconds{server="tomcat"}'] == pytest.approx(0.00025)
    assert found[f"prony_service_time_seconds_count{inside}"] == 200
    assert found[f"prony_service_time_seconds_sum{inside}"] == pytest.approx(0.4)
    quantile = 'prony_service_time_seconds{server="tomcat",measured="true",quantile="0.5"}'
    assert found[quantile] == pytest.approx(0.003)
    assert found['prony_latency_seconds{server="tomcat",measured="true",quantile="0.99"}'] == pytest.approx(
        0.009
    )
    assert 'prony_client_cpu_ratio{server="tomcat"}' not in found, "the last row had none: not a made-up zero"
    assert found['prony_trial_phase_info{server="tomcat",phase="window"}'] == 1
    assert found['prony_experiment_info{experiment="261122-abcd",title="a vs b"}'] == 1
    assert found["prony_trials_planned"] == 3


def test_the_figures_of_the_last_trial_are_told_with_how_far_they_may_be_off() -> None:
    metrics = running()
    assert not [name for name in values(metrics) if name.startswith(("prony_figure", "prony_trial_conf"))]
    bias = {"requests_per_s": Bias(high=0.02), "p99_ms": Bias(low=None, high=None)}
    slower = Finding(check="isolation", reason="other processes", bias=bias)
    metrics.trial_ended(
        Judgement(conforms=True, findings=(slower,)), {"requests_per_s": 100.0, "p99_ms": 5.0, "x": 1.0}, 5.0
    )
    found = values(metrics)
    assert found['prony_trials_ended_total{conforms="true"}'] == 1
    assert found['prony_trial_conforms{server="tomcat"}'] == 1
    rate, p99 = ('server="tomcat",figure="requests_per_second"', 'server="tomcat",figure="p99_seconds"')
    assert found[f"prony_figure{{{rate}}}"] == 100
    assert found[f"prony_figure{{{p99}}}"] == 0.005
    assert found[f'prony_figure_bias_ratio{{{rate},side="low"}}'] == 0
    assert found[f'prony_figure_bias_ratio{{{rate},side="high"}}'] == pytest.approx(0.02)
    assert found[f'prony_figure_bias_ratio{{{p99},side="low"}}'] == -1
    assert found[f'prony_figure_bias_ratio{{{p99},side="high"}}'] == math.inf
    assert 'prony_requests_in_flight{server="tomcat"}' not in found, "no load between trials"


def test_a_trial_that_does_not_conform_has_no_figure() -> None:
    metrics = running()
    metrics.trial_ended(Judgement(conforms=True, findings=()), {"requests_per_s": 100.0}, 5.0)
    wrong = Finding(check="errors", conforms=False, reason="12 % failed")
    metrics.trial_ended(Judgement(conforms=False, findings=(wrong,)), {"requests_per_s": 100.0}, 5.0)
    found = values(metrics)
    assert found['prony_trials_ended_total{conforms="true"}'] == 1
    assert found['prony_trials_ended_total{conforms="false"}'] == 1
    assert found['prony_trial_conforms{server="tomcat"}'] == 0
    assert not [name for name in found if name.startswith("prony_figure")]


@pytest.mark.parametrize("text", ["9400", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "[::1:9400", ""])
def test_an_address_that_is_none_is_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        address(text)


@pytest.mark.parametrize("text", ["0.0.0.0:9400", "10.0.0.1:9400", "example.org:9400", "[::]:9400"])
def test_only_loopback_addresses_are_listened_on(text: str) -> None:
    with pytest.raises(UsageError, match="loopback"):
        address(text)


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(EnvironmentFault, match="--metrics"),
        served("127.0.0.1", taken.getsockname()[1], running().families),
    ):
        pass


def test_only_metrics_are_served_and_in_the_format_that_was_asked_for() -> None:
    metrics = running()
    with served("127.0.0.1", 0, metrics.families) as (host, port):
        url = f"http://{host}:{port}"
        asked = urllib.request.Request(f"{url}/metrics", headers={"Accept": "application/openmetrics-text"})
        with urllib.request.urlopen(asked, timeout=30) as said:
            assert said.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
            assert said.read().decode() == "".join(openmetrics(metrics.families()))
        with urllib.request.urlopen(f"{url}/metrics", timeout=30) as said:
            assert said.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{url}/", timeout=30)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{url}/metrics", timeout=5)


@pytest.mark.needs("prometheus")
def test_promtool_finds_nothing_wrong() -> None:
    promtool = Path(program("prometheus")).with_name("promtool")
    text = "".join(classic(running().families()))
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: prony
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def query(url: str, expression: str) -> list[dict[str, Any]]:
    wanted = urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{wanted}", timeout=10) as said:
            found: list[dict[str, Any]] = json.loads(said.read())["data"]["result"]
            return found
    except (urllib.error.URLError, OSError):
        return []


@pytest.mark.e2e
@pytest.mark.needs("prometheus")
def test_a_real_prometheus_scrapes_a_running_load(lab: Lab, reference_server: str, tmp_path: Path) -> None:
    """The load runs until Prometheus has seen it, a minute at most."""
    port, own = free_port(), free_port()
    (tmp_path / "prometheus.yml").write_text(CONFIG.format(port=port))
    prometheus = subprocess.Popen(
        [
            program("prometheus"),
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{own}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    load = lab.start("load", reference_server, "--rate", "50", "-d", "120s", "--warmup", "1s", "--metrics",
                     f"127.0.0.1:{port}")  # fmt: skip
    try:
        seen: dict[str, list[dict[str, Any]]] = {}
        wanted = {
            "up": 'up{job="prony"} == 1',
            "completed": 'prony_requests_completed_total{measured="true"} > 0',
            "quantile": 'prony_service_time_seconds{quantile="0.99"}',
            "lag": "prony_send_lag_p99_seconds",
            "ended": 'prony_trials_ended_total{conforms="true"} == 0',
        }
        until = time.monotonic() + 90
        while len(seen) < len(wanted) and time.monotonic() < until and load.poll() is None:
            for name, expression in wanted.items():
                if name not in seen and (found := query(f"http://127.0.0.1:{own}", expression)):
                    seen[name] = found
            time.sleep(0.2)
        assert set(seen) == set(wanted), load.communicate(timeout=60) if load.poll() is not None else seen
    finally:
        load.terminate()
        load.communicate(timeout=180)
        prometheus.terminate()
        prometheus.wait(60)
