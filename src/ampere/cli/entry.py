"""`ampere`: parse, run. An error is one line on standard error and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from ampere.core.errors import AmpereError, StorageError
from ampere.core.escaping import printable

from .parsing import parse

# Matrices here are small: a second thread waits more than it works, and takes CPU time from the worker. Numpy reads
# this when it is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

INTERRUPTED, INTERNAL_ERROR = 130, 70


def main(arguments: Sequence[str] | None = None) -> int:
    _open_missing_streams()
    _tolerate_any_terminal()
    try:
        _need_current_folder()
        command, options = parse(sys.argv[1:] if arguments is None else arguments)
        command.run(options)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # the reader has what it wanted, as in `| head`
        _leave_the_output()
        return 0
    except KeyboardInterrupt:
        return _say("stopped", INTERRUPTED)
    except AmpereError as error:
        return _say(str(error), error.exit_code)
    except OSError as error:
        _leave_the_output()
        return _say(_os_message(error), StorageError.exit_code)
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return _say(f"internal error ({what}): rerun with AMPERE_DEBUG=1 for the traceback", INTERNAL_ERROR)


def _os_message(error: OSError) -> str:
    """The operating system's own words, and what to do."""
    where = f"{error.filename}: " if error.filename else ""
    cause = error.strerror or str(error)
    remedy = "free some space and run again" if error.errno == errno.ENOSPC else "check the path and its permissions"
    return f"{where}{cause}: {remedy}"


def _say(message: str, code: int) -> int:
    if os.environ.get("AMPERE_DEBUG"):
        traceback.print_exc()
    print(f"ampere: {printable(' '.join(message.split()))}", file=sys.stderr)
    return code


def _open_missing_streams() -> None:
    """Replace streams that are closed, as by `>&-`: the next file that is opened would else be written to as one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _need_current_folder() -> None:
    """Libraries fail without one, each in its own way."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise StorageError("the current folder was removed: change to another one and run again") from None


def _tolerate_any_terminal() -> None:
    """Show a question mark for a character that the terminal lacks, such as the plus-minus sign."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _leave_the_output() -> None:
    """Drop what is left to write, so that Python does not try to write it again at its exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
