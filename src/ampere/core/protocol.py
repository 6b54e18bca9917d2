"""What host and worker both know of the protocol between them; docs/reference/protocol.md describes it."""

from typing import BinaryIO, Iterator, Sequence

PROTOCOL = 3  # the newest version that is spoken here
PROTOCOLS = (PROTOCOL,)

MOST_LINE_BYTES = 8 * 2**20  # of a request or an answer: a network of some ten thousand layers
TOKEN_VARIABLE = "AMPERE_WORKER_TOKEN"  # of the environment: what a host presents to a worker that listens
OWN_THREADS_VARIABLE = "AMPERE_OWN_THREADS"  # what the thread variables said before the host set them; may be empty
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # the first one that is set counts for PyTorch
SILENCE_SECONDS = 60.0  # of a host far away, after which its worker is ended
QUICKEST_BEAT, SLOWEST_BEAT = 0.05, 3600.0  # seconds

COMPILE_LIMIT_SECONDS = 120.0  # a workload that compiles for longer is given up, unless the user says otherwise
COMPILE_TIMEOUT = "compile_timeout"  # the error type of such a workload
COMPILE_TIMEOUT_EXIT_CODE = 71  # of the worker, in case its answer does not reach the host

PIECE = 65536


def lines_of(stream: BinaryIO, most: int = MOST_LINE_BYTES) -> Iterator[bytes]:
    """The lines of a stream with their ends; of a line that is too long its first `most` + 1 bytes, without an end."""
    line = stream.readline(most + 1)
    while line:
        yield line
        if len(line) > most:
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = stream.readline(PIECE)
        line = stream.readline(most + 1)


def older_side(worker: Sequence[int], host: Sequence[int]) -> str:
    """What to update where a worker and a host share no version."""
    return "update the worker" if max(worker, default=0) < max(host, default=0) else "update Ampere on the host"
