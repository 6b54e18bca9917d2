"""The part that travels to a device: trains what it is asked to, measures it, answers in JSON lines.

Standard library, `ampere.network` and the training runtime found on the device; Python 3.8 and later.
"""

PROTOCOL = 1  # the newest that is spoken here; docs/PROTOCOL.md says what it is
PROTOCOLS = (PROTOCOL,)
