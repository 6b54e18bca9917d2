"""Constants of the protocol that host and worker both speak; docs/reference/protocol.md describes it."""

PROTOCOL = 2  # the newest version that is spoken here
PROTOCOLS = (PROTOCOL,)

COMPILE_LIMIT_SECONDS = 120.0  # a workload that compiles for longer is given up, unless the user says otherwise
COMPILE_TIMEOUT = "compile_timeout"  # the error type of such a workload
COMPILE_TIMEOUT_EXIT_CODE = 71  # of the worker, in case its answer does not reach the host
