"""`ampere`: parse, run; whatever goes wrong becomes one line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from ampere.core.errors import AmpereError, StorageError

from .parsing import parse

# Matrices here are small: a second thread waits more than it works, the more so beside a worker. Read by numpy when
# it is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

INTERRUPTED, BROKEN_PIPE, INTERNAL_ERROR = 130, 141, 70


def main(arguments: Sequence[str] | None = None) -> int:
    _tolerate_any_terminal()
    try:
        command, options = parse(sys.argv[1:] if arguments is None else arguments)
        command.run(options)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:
        _leave_the_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return _say("stopped", INTERRUPTED)
    except AmpereError as error:
        return _say(str(error), error.exit_code)
    except OSError as error:
        _leave_the_output()
        return _say(f"the system refuses: {error}", StorageError.exit_code)
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return _say(f"internal error ({what}): rerun with AMPERE_DEBUG=1 for the traceback", INTERNAL_ERROR)


def _say(message: str, code: int) -> int:
    if os.environ.get("AMPERE_DEBUG"):
        traceback.print_exc()
    print(f"ampere: {' '.join(message.split())}", file=sys.stderr)
    return code


def _tolerate_any_terminal() -> None:
    """A terminal without the sign for plus or minus shows a question mark instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _leave_the_output() -> None:
    """What cannot be written, because its reader or its disk has gone, must not be tried again when Python ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
