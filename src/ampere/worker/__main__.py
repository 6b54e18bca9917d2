"""`python -m ampere.worker`: serve requests until standard input closes; with `--listen 7070`, over TCP."""

import os
import sys

# `-m` puts the current folder on the path, where a `queue.py` would be taken for Python's own.
if __name__ == "__main__" and sys.path[0] != __file__.rsplit(os.sep, 3)[0]:
    sys.path.remove(sys.path[0])

from .listening import listen, options_in
from .memory import volunteer_for_the_oom_killer
from .serving import open_channel, serve


def main() -> None:
    options = options_in(sys.argv[1:])
    del sys.argv[1:]  # the user's code finds no arguments
    if options.place:
        listen(options.place, options.allowed or [])
    volunteer_for_the_oom_killer()
    serve(open_channel(), options.allowed)
    os._exit(0)  # at once: a training runtime may take seconds to shut down


if __name__ == "__main__":
    main()
