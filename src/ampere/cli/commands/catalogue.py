"""`ampere catalogue`: profiles to share, in a folder or at a web address."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Any

from ampere.cli import arguments
from ampere.cli.console import headline, notice, print_facts, print_json, print_table
from ampere.core.errors import AmpereError, ProfileError, UsageError
from ampere.core.units import counted

if TYPE_CHECKING:
    from ampere.storage.catalogue import Catalogue, Entry

ACTIONS = ("add", "list", "show", "verify")


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "A catalogue holds profiles that others may use: each says which device it is of, by which meter, who measured "
        "it and under which licence. Serial numbers and host names are left out.",
        "ampere catalogue add pixel.json --name pixel-7 --by 'A. Volta'",
        "ampere catalogue list",
        "ampere catalogue list --home https://example.org/profiles",
        "ampere catalogue show pixel-7",
        "ampere estimate cnn5 --profile catalogue:pixel-7",
    )
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("what", metavar="WHAT", nargs="?", help="add: a profile's file; show, verify: an entry's name")
    words = "the catalogue: a folder or a web address (default: AMPERE_CATALOGUE, or a folder in AMPERE_HOME)"
    parser.add_argument("--home", metavar="PLACE", help=words)
    group = parser.add_argument_group("add")
    group.add_argument("--name", metavar="NAME", help="of the entry")
    group.add_argument("--by", metavar="WHO", default="", help="who measured it")
    group.add_argument("--licence", metavar="NAME", default="", help="under which others may use it")
    group.add_argument("--how", metavar="TEXT", default="", help="conditions: room, case, charger, what else ran")
    group.add_argument("--keep-identity", action="store_true", help="also what tells this machine from others")
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.storage.catalogue import Catalogue

    place = Catalogue(options.home)
    record = DOES[options.action](place, options)
    if options.json:
        print_json(record)


def _add(place: Catalogue, options: Namespace) -> dict[str, Any]:
    from pathlib import Path

    from ampere.storage.catalogue import Entry, shareable
    from ampere.storage.profile import Profile

    if not options.what or not options.name:
        raise UsageError(
            "name a profile's file and the entry: ampere catalogue add FILE --name NAME --by WHO --licence L"
        )
    known = shareable(Profile.load(Path(options.what)), options.name, options.keep_identity)
    if not known.observations:
        raise ProfileError(f"{options.what} holds no measurement: profile again, for longer")
    entry = Entry(options.name, known, options.by, options.licence, options.how, f"{date.today():%Y-%m-%d}")
    path = place.add(entry)
    notice(f"added {entry.origin}", options.quiet)
    if not options.json:
        print_facts([("entry", str(path)), ("next", f"ampere catalogue verify {options.name}")])
    return {"path": str(path), "name": entry.name}


def _list(place: Catalogue, options: Namespace) -> dict[str, Any]:
    entries, problems = list[dict[str, Any]](), list[str]()
    for name in place.names():
        try:
            entries.append(_summary(place.entry(name)))
        except AmpereError as problem:
            problems.append(str(problem))
            notice(f"left out: {problem}", options.quiet)
    if not options.json:
        headline(f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'} in {place.place}")
        columns = ("name", "device", "meter", "measured_by", "licence")
        if entries:
            print_table([c.replace("_", " ") for c in columns], [[str(e[c]) for c in columns] for e in entries])
        else:
            print_facts([("next", "ampere catalogue add PROFILE.json --name NAME --by WHO --licence LICENCE")])
    return {"home": place.place, "entries": entries, "problems": problems}


def _show(place: Catalogue, options: Namespace) -> dict[str, Any]:
    entry = place.entry(_named(options))
    if not options.json:
        headline(entry.origin)
        print_facts(_facts(entry))
    return _summary(entry)


def _verify(place: Catalogue, options: Namespace) -> dict[str, Any]:
    found = place.problems()
    if options.what:
        found = {_named(options): found.get(options.what, f"{place.place} has no entry {options.what}")}
    bad = {name: problem for name, problem in found.items() if problem}
    if not options.json:
        headline(f"{len(found) - len(bad)} of {counted(len(found), 'entry is', 'entries are')} whole")
    for problem in list(bad.values())[1:]:
        notice(problem)
    if bad:
        raise ProfileError(next(iter(bad.values())))
    return {"entries": sorted(found)}


def _named(options: Namespace) -> str:
    if not options.what:
        raise UsageError(f"name an entry: ampere catalogue {options.action} NAME")
    return str(options.what)


def _summary(entry: Entry) -> dict[str, Any]:
    profile = entry.profile
    return {
        "name": entry.name,
        "device": profile.device_name,
        "meter": profile.meter.name,
        "measured": profile.meter.measured,
        "setup": profile.setup.to_json(),
        "spaces": list(profile.spaces),
        "measurements": len(profile.observations),
        "measured_by": entry.measured_by,
        "licence": entry.licence,
        "how": entry.how,
        "date": entry.date,
    }


def _facts(entry: Entry) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import meter_line, setup_line

    profile = entry.profile
    yield (
        "device",
        ", ".join(f"{key} {value}" for key, value in profile.device.items() if isinstance(value, (str, int))),
    )
    yield "setup", setup_line(profile.setup)
    yield "covers", ", ".join(profile.spaces)
    yield "from", f"{counted(len(profile.observations), 'measurement')} in {profile.profiling_seconds:.0f} s"
    yield "joules", meter_line(profile.meter)
    if entry.how:
        yield "how", entry.how


DOES = {"add": _add, "list": _list, "show": _show, "verify": _verify}
