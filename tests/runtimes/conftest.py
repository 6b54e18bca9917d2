"""Workers spoken to by hand, as in the tests of the worker itself."""

from tests.worker.conftest import examples, layers_subject, start_worker, subject_of, worker

__all__ = ["examples", "layers_subject", "start_worker", "subject_of", "worker"]
