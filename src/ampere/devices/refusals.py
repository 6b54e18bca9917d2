"""Why a remote device cannot be used, in one line with its remedy: what ssh or the far end said, and what to do."""

from __future__ import annotations

from ..errors import DeviceError
from ..worker.arrival import CUT_SHORT, NO_FOLDER, OLDEST, TOO_OLD
from .address import Address

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # what every shell answers
UNFIT = (NOT_EXECUTABLE, NOT_FOUND, TOO_OLD, NO_FOLDER, CUT_SHORT)
NAME_ANOTHER = "install one, or name it as in ssh://host?python=/path/to/python3 or AMPERE_REMOTE_PYTHON"

# What ssh says, what that means, what to do; the first that fits.
OF_SSH = (
    ("Could not resolve hostname", "no machine of that name is known", "check the name, or add it to ~/.ssh/config"),
    ("Host key verification failed", "its host key is unknown or has changed", "connect once by hand: {by_hand}"),
    ("Permission denied", "it refuses your key", "give it one that `{by_hand} true` takes without a password"),
    ("Too many authentication failures", "it refuses your keys", "name the right one in ~/.ssh/config"),
    ("Connection refused", "no ssh server answers there", "start one, or give its port as in ssh://host:2222"),
    ("timed out", "it does not answer", "check that it is switched on and in reach"),
    ("not responding", "it does not answer any more", "check that it is switched on and in reach"),
    ("No route to host", "it cannot be reached", "check that it is switched on and in reach"),
    ("Network is unreachable", "it cannot be reached", "check the network of this machine"),
)


def unreachable(address: Address, said: str) -> DeviceError:
    """`said` is what ssh wrote before it ended."""
    for sign, meaning, remedy in OF_SSH:
        if sign in said:
            return _error(address, meaning, remedy.format(by_hand=address.by_hand()))
    last = (said.strip().splitlines() or ["nothing"])[-1]
    return _error(address, f"the connection ended (last words: {last[:200]})", f"try `{address.by_hand()} true`")


def unfit(address: Address, code: int, said: str) -> DeviceError:
    oldest = ".".join(map(str, OLDEST))
    if code in (NOT_EXECUTABLE, NOT_FOUND):
        return _error(address, f"there is no {address.python} there", NAME_ANOTHER)
    if code == TOO_OLD:
        return _error(address, f"its {address.python} is {said}, and {oldest} is the oldest that will do", NAME_ANOTHER)
    if code == NO_FOLDER:
        return _error(
            address, f"no temporary folder can be written there ({said})", "free some space, or set TMPDIR there"
        )
    return _error(address, "the worker did not arrive whole", "try again")


def _error(address: Address, what: str, remedy: str) -> DeviceError:
    return DeviceError(f"cannot use {address.destination} over ssh: {what}; {remedy}")
