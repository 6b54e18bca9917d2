"""Peak memory of a changed network. It is followed with torch, in a process of its own that starts when first asked.

server --- one line of JSON: network, setup ---> `python -m ampere.web.memory`
       <-- one line: the estimate, or an error --
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from threading import Timer
from typing import Any

from ampere.core import Network, TrainingSetup
from ampere.core.errors import AmpereError, ModelError, first_line

MOST_LAYERS = 2_000
MOST_SECONDS = 30.0
FOLLOWED = "torch"  # the runtime whose memory is followed

Record = dict[str, Any]


class MemoryProcess:
    """Follows the memory of described networks, one after the other."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, network: Network, setup: TrainingSetup, allocator: str, runtime_bytes: float | None) -> Record:
        if setup.runtime != FOLLOWED or find_spec("torch") is None:
            raise ModelError(f"memory is followed with {FOLLOWED} only, which must be installed: leave it out")
        if len(network.layers) > MOST_LAYERS:
            raise ModelError(f"memory is followed up to {MOST_LAYERS:,} layers: choose a smaller network")
        asked = {
            "network": network.to_json(),
            "setup": setup.to_json(),
            "tuned": allocator == "tuned",
            "runtime_bytes": runtime_bytes,
        }
        answer = self._answer(json.dumps(asked))
        if "error" in answer:
            raise ModelError(str(answer["error"]))
        return answer

    def _answer(self, line: str) -> Record:
        process = self._running()
        assert process.stdin
        assert process.stdout
        limit = Timer(MOST_SECONDS, process.kill)
        limit.start()
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            answer = ""
        finally:
            limit.cancel()
        if not answer:
            self.close()
            raise ModelError(f"the memory could not be followed within {MOST_SECONDS:g} s: choose a smaller network")
        found: Record = json.loads(answer)
        return found

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "ampere.web.memory"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        return self._process

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def follow(asked: Record) -> Record:
    """What one line asks for."""
    from ampere.estimation.memory import memory_of
    from ampere.tracing.memory import allocations_of_network

    network, setup = Network.from_json(asked["network"]), TrainingSetup.from_json(asked["setup"])
    allocations = allocations_of_network(network, setup.optimizer, setup.dtype)
    return memory_of(allocations, network.batch, asked["runtime_bytes"], asked["tuned"]).to_json()


def main() -> None:
    for line in sys.stdin:
        try:
            answer = follow(json.loads(line))
        except AmpereError as error:
            answer = {"error": str(error)}
        except Exception as error:  # of the training library, about a network that it cannot build
            answer = {"error": f"the memory cannot be followed ({first_line(error):.200}): leave it out"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
