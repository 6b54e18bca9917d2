"""Signs of life: while a request is worked on, something is called every so often; at rest nothing wakes up."""

import contextlib
import threading
import time
from typing import Callable, Optional


class Heart:
    def __init__(self, beat: Callable[[], None]) -> None:
        self._beat, self._seconds = beat, 0.0
        self._working = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def every(self, seconds: Optional[float]) -> None:
        """From now on; None for never again."""
        self._seconds = seconds or 0.0
        if seconds and self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def work(self) -> None:
        self._working.set()

    def rest(self) -> None:
        self._working.clear()

    def _run(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # nobody is left to hear it
            while self._working.wait() and self._seconds:
                time.sleep(self._seconds)
                if self._working.is_set():
                    self._beat()
        self._thread = None
