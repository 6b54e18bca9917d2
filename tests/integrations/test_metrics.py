"""Joules of a running budget, as Prometheus and OpenTelemetry see them."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import urlopen

import pytest
from tests.integrations.jobs import SimulatedBattery

from ampere import Budget
from ampere.integrations.metrics import attributes_of, observe_opentelemetry, push_prometheus, serve_prometheus


@pytest.fixture
def running(monkeypatch):
    """A budget of 100 J that has spent 3 of them in 3 of 10 steps."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    battery = SimulatedBattery()
    with Budget(100, meter=battery, iterations=10) as budget:
        for _ in range(3):
            battery.drained += 1.0
            budget.step()
        yield budget, battery


def scraped(port):
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}


def test_prometheus_asks_a_real_port_and_sees_joules_grow(running):
    pytest.importorskip("prometheus_client")
    budget, battery = running
    with serve_prometheus(budget, port=0) as port:
        before = scraped(port)
        battery.drained += 2.0
        budget.step()
        after = scraped(port)
    [name] = [name for name in before if name.startswith("hw_energy_joules_total")]
    assert 'hw_id="simulated battery"' in name
    assert 'ampere_joules="simulated"' in name
    assert (before[name], after[name]) == (3.0, 5.0)
    assert after["ampere_budget_left_joules"] == 95.0
    assert after["ampere_budget_steps_total"] == 4.0
    assert after["ampere_budget_forecast_joules"] >= 5.0
    with pytest.raises(OSError, match="refused"):
        scraped(port)


def test_a_push_gateway_gets_the_same_figures(running):
    pytest.importorskip("prometheus_client")
    received = []

    class Gateway(BaseHTTPRequestHandler):
        def do_PUT(self):
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Gateway) as server:
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        push_prometheus(running[0], f"127.0.0.1:{server.server_port}", job="training")
        serving.join()
    [(path, text)] = received
    assert path == "/metrics/job/training"
    assert "hw_energy_joules_total" in text


def test_opentelemetry_reads_hw_energy_in_joules(running):
    pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry's SDK is not installed")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    observe_opentelemetry(running[0], MeterProvider([reader]))
    [resource] = reader.get_metrics_data().resource_metrics
    found = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
    [point] = found["hw.energy"].data.data_points
    assert (found["hw.energy"].unit, point.value, point.attributes["hw.id"]) == ("J", 3.0, "simulated battery")
    assert found["ampere.budget.left"].data.data_points[0].value == 97.0


def test_attributes_name_the_meter_and_its_origin(running):
    assert attributes_of(running[0]) == {
        "hw.id": "simulated battery",
        "hw.type": "other",
        "ampere.joules": "simulated",
    }
