"""Workers spoken to by hand, as in the tests of the worker itself."""

from tests.worker.conftest import examples, layers_workload, start_worker, worker, workload_of

__all__ = ["examples", "layers_workload", "start_worker", "worker", "workload_of"]
