"""`python -m ampere` is the command `ampere`."""

import os
import sys

# `-m` puts the current folder on the path, where a `queue.py` would be taken for Python's own.
if __name__ == "__main__" and sys.path[0] != __file__.rsplit(os.sep, 2)[0]:
    sys.path.remove(sys.path[0])

from ampere.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
