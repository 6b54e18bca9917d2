"""The pipe to the host: one JSON object a line, kept apart from whatever a model prints or reads.

fd 0 --dup--> requests      fd 0 becomes /dev/null
fd 1 --dup--> answers       fd 1 becomes standard error
"""

import json
import os
import queue
import signal
import threading
import time
from typing import Any, BinaryIO, Dict, Optional

from .heart import Heart

ORPHAN_GRACE_SECONDS = 10.0


class Channel:
    def __init__(self, requests: BinaryIO, answers: BinaryIO) -> None:
        self._requests, self._answers = requests, answers
        self._writing = threading.Lock()
        self.heart = Heart(lambda: self._write(b"\n"))
        self._lines: queue.Queue[Optional[bytes]] = queue.Queue()
        # A thread, so that a closed pipe is noticed even while a variant hangs.
        threading.Thread(target=self._listen, daemon=True).start()

    def receive(self) -> Optional[bytes]:
        """The next request, or None when the host is gone; an empty line only says that it is still there."""
        self.heart.rest()
        line = self._lines.get()
        while line is not None and not line.strip():
            line = self._lines.get()
        self.heart.work()
        return line

    def send(self, answer: Dict[str, Any]) -> None:
        self._write(json.dumps(answer, allow_nan=False).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        with self._writing:
            self._answers.write(line)
            self._answers.flush()

    def _listen(self) -> None:
        for line in self._requests:
            self._lines.put(line)
        self._lines.put(None)
        time.sleep(ORPHAN_GRACE_SECONDS)
        _end_everything()


def open_channel() -> Channel:
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Channel(os.fdopen(requests, "rb"), os.fdopen(answers, "wb"))


def _end_everything() -> None:
    """Nobody is left to answer: end this process, and children still busy with a variant."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)
