"""A running Budget's joules for Prometheus and OpenTelemetry.

    with ampere.Budget(...) as budget, serve_prometheus(budget, port=9464):     http://127.0.0.1:9464/metrics
        train()

    push_prometheus(budget, "gateway:9091", job="training")                     once, at the end say
    observe_opentelemetry(budget)                                               with your own MeterProvider

    hw.energy {hw.id, hw.type}  J    a counter, OpenTelemetry's name; hw_energy_joules_total in Prometheus
    ampere.budget.left          J    a gauge: what may still be spent
    ampere.budget.forecast      J    a gauge: the whole job, where its length is known
    ampere.budget.steps              a counter

Nothing is done at a step: figures are read when somebody asks for them, from what the budget has counted anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ampere.core.errors import RuntimeMissingError

if TYPE_CHECKING:
    from ampere.budget import Budget

LOOPBACK = "127.0.0.1"
MISSING = "{} is not installed: pip install 'ampere-energy[metrics]'"


def attributes_of(budget: Budget) -> dict[str, str]:
    """What the joules are of, in OpenTelemetry's words, and whether they were measured."""
    meter = budget.meter
    origin = "simulated" if meter.simulated else "measured" if meter.measured else "modelled"
    kind = {"powercap": "cpu", "cpu-time": "cpu", "zeus": "gpu", "battery": "battery"}.get(meter.name, "other")
    return {"hw.id": meter.name, "hw.type": kind, "ampere.joules": origin}


# Prometheus.


class BudgetCollector:
    """A collector of prometheus_client: `registry.register(BudgetCollector(budget))`."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        budget = self._budget
        attributes = attributes_of(budget)
        names, values = [name.replace(".", "_") for name in attributes], [*attributes.values()]
        energy = CounterMetricFamily("hw_energy_joules", "Joules that the training has spent", labels=names)
        energy.add_metric(values, budget.spent)
        yield energy
        yield CounterMetricFamily("ampere_budget_steps", "Training steps", value=budget.steps_done)
        yield GaugeMetricFamily("ampere_budget_left_joules", "Joules that may still be spent", value=budget.left)
        if (forecast := budget.forecast_joules) is not None:
            yield GaugeMetricFamily("ampere_budget_forecast_joules", "Joules of the whole job", value=forecast)


def _registry(budget: Budget) -> Any:
    try:
        from prometheus_client import CollectorRegistry
    except ImportError:
        raise RuntimeMissingError(MISSING.format("prometheus_client")) from None
    registry: Any = CollectorRegistry()
    registry.register(BudgetCollector(budget))
    return registry


@contextmanager
def serve_prometheus(budget: Budget, port: int = 9464, address: str = LOOPBACK) -> Iterator[int]:
    """Answers at `/metrics` while the block runs; gives the port, which is a free one where 0 is asked for."""
    registry = _registry(budget)
    from prometheus_client import start_http_server

    server, thread = start_http_server(port, address, registry)
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def push_prometheus(budget: Budget, gateway: str, job: str = "ampere") -> None:
    """Sends the figures to a push gateway, for jobs that end before anybody asks."""
    registry = _registry(budget)
    from prometheus_client import push_to_gateway

    push_to_gateway(gateway, job=job, registry=registry)


# OpenTelemetry.


def observe_opentelemetry(budget: Budget, provider: Any = None) -> None:
    """Registers the instruments with a MeterProvider, by default the global one; its readers decide when to ask."""
    try:
        from opentelemetry import metrics
    except ImportError:
        raise RuntimeMissingError(MISSING.format("OpenTelemetry")) from None
    meter = (provider or metrics.get_meter_provider()).get_meter("ampere")
    attributes = attributes_of(budget)

    def observed(value: float | None) -> Iterable[Any]:
        return [] if value is None else [metrics.Observation(value, attributes)]

    meter.create_observable_counter(
        "hw.energy", [lambda _: observed(budget.spent)], unit="J", description="Energy consumed by the component"
    )
    meter.create_observable_counter(
        "ampere.budget.steps", [lambda _: observed(budget.steps_done)], unit="{step}", description="Training steps"
    )
    meter.create_observable_gauge(
        "ampere.budget.left", [lambda _: observed(budget.left)], unit="J", description="Joules that may still be spent"
    )
    meter.create_observable_gauge(
        "ampere.budget.forecast",
        [lambda _: observed(budget.forecast_joules)],
        unit="J",
        description="Joules of the whole job, where its length is known",
    )
