"""`python -m ampere` is the command `ampere`."""

from ampere.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
