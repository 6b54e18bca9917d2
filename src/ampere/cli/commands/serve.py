"""`ampere serve`: the explorer in a browser, and the HTTP interface under it."""

from __future__ import annotations

import os
import secrets
import sys
from argparse import ArgumentParser, Namespace

from ampere.cli import arguments, option_values
from ampere.cli.console import headline, notice, print_facts, print_json
from ampere.core.errors import UsageError

PORT = 8765
TOKEN = "AMPERE_SERVE_TOKEN"
LONG_ENOUGH = 16  # characters of a token of the user's own


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Turn a knob, see the joules: opens a page in your browser that answers what a model would cost with other "
        "widths, depth, batch or device, from the profiles stored here. Nothing is trained. Programs can ask the same "
        "questions at /api/v1.",
        "ampere serve                                  the built-in models",
        "ampere serve net.py:build net.json            and your own",
        "ampere serve --no-browser --port 9000",
        "AMPERE_SERVE_TOKEN=T ampere serve --host board --certificate b.pem --key b.pem",
    )
    parser.add_argument("models", metavar="MODEL", nargs="*", help="file.py:function, or a file of `ampere trace`")
    group = parser.add_argument_group("address")
    whole = option_values.count_or_zero
    group.add_argument("--port", metavar="N", type=whole, default=PORT, help=f"default {PORT}; 0: any that is free")
    group.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="where to listen (default: this machine)")
    group.add_argument("--name", metavar="NAME", action="append", default=[], help="a host name that it has, too")
    group.add_argument("--certificate", metavar="FILE", help="TLS certificate, with --key; needed off this machine")
    group.add_argument("--key", metavar="FILE", help="private key of the certificate")
    group.add_argument(
        "--unencrypted", action="store_true", help="off this machine without TLS: others can read the token"
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.web.guards import Allowed
    from ampere.web.server import allowed_names, is_loopback, listening, load_networks, need_packages, serve

    need_packages()
    certificate = _certificate(options)
    token = None if is_loopback(options.host) else _token(certificate is not None or options.unencrypted)
    names = allowed_names(options.host, options.name)
    networks = load_networks(options.models, lambda words: notice(words, options.quiet))
    with listening(options.host, options.port) as opened:
        port = opened.getsockname()[1]
        host = options.name[0] if options.name else "[::1]" if options.host == "::1" else options.host
        address = f"{'https' if certificate else 'http'}://{host}:{port}/"
        _say(address, token, options)
        browse = None if options.no_browser else address + (f"#token={token}" if token else "")
        serve(networks, opened, Allowed(names, port, token), certificate=certificate, browse=browse)


def _certificate(options: Namespace) -> tuple[str, str] | None:
    if bool(options.certificate) != bool(options.key):
        raise UsageError("--certificate and --key belong together: give both, or none")
    return (options.certificate, options.key) if options.certificate else None


def _token(protected: bool) -> str:
    if not protected:
        raise UsageError(
            "off this machine the token would be sent unencrypted: give --certificate and --key, or --unencrypted "
            "where the network is trusted"
        )
    own = os.environ.get(TOKEN)
    if own is not None and len(own) < LONG_ENOUGH:
        raise UsageError(f"{TOKEN} has fewer than {LONG_ENOUGH} characters: choose a longer one, or leave it out")
    return own or secrets.token_urlsafe(24)


def _say(address: str, token: str | None, options: Namespace) -> None:
    if options.json:
        print_json({"address": address, "token": token})
    elif not options.quiet:
        headline(f"the explorer is at {address}")
        facts = [("for programs", f"{address}api/v1/openapi.json"), ("stop it", "with Ctrl+C")]
        print_facts([*([("token", token)] if token else []), *facts])
    sys.stdout.flush()  # it is the last output for a long time
