"""`python -m ampere.worker`: serve requests until standard input closes."""

from .channel import open_channel
from .memory import volunteer_for_the_oom_killer
from .serving import serve


def main() -> None:
    volunteer_for_the_oom_killer()
    serve(open_channel())


if __name__ == "__main__":
    main()
